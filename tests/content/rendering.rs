//! Subjects and texts.

use std::collections::{BTreeMap, BTreeSet};

use postrider::content::{
    AccountRecovered, Alert, Announcement, Content, Letterhead, PasskeyAdded, RecoveryLink, RenderError, Renderer,
    TemplateError, VerificationLink,
};

use crate::support::{HOME, rendered, renderer, urls};

fn at() -> chrono::DateTime<chrono::Utc> {
    "2026-02-03T04:05:06Z".parse().unwrap()
}

fn passkey(name: &str) -> Content {
    let page = "https://id.example.com/inbox/1".into();
    PasskeyAdded { handle: "ada".into(), passkey: name.into(), at: at(), page }.into()
}

fn announcement(text: &str) -> Announcement {
    Announcement {
        handle: "ada".into(),
        subject: "News".into(),
        text: text.into(),
        page: "https://id.example.com/inbox/1".into(),
        unsubscribe: None,
    }
}

#[test]
fn every_content_has_samples_and_they_render() {
    let names: BTreeSet<_> = rendered().iter().map(|(content, _)| content.name()).collect();
    assert_eq!(names, Content::NAMES.iter().copied().collect());
}

#[test]
fn a_text_is_as_it_is_to_be() {
    let content = RecoveryLink { handle: "ada".into(), link: "https://id.example.com/r#x".into(), expires_at: at() };
    let rendered = renderer().render(&content.into()).unwrap();
    assert_eq!(rendered.subject, "Recover your Example ID account");
    let text = "\
Hello ada,

Someone asked to recover your account, as one does who can no longer
sign in. To go on, open this page:

https://id.example.com/r#x

The link works once, until 3 February 2026 at 04:05 UTC. Whoever has it
can get into your account, so give it to nobody; we never ask for it.

If it was not you, do nothing: without the link nobody gets in, and
nothing changes.

Example ID sent this because someone asked to recover the account that
has this address. Help:

https://id.example.com/
";
    assert_eq!(rendered.text, text);
}

#[test]
fn prose_is_wrapped_and_links_stand_alone() {
    for (content, rendered) in rendered() {
        let (name, lines) = (content.name(), rendered.text.lines().collect::<Vec<_>>());
        for line in lines.iter().filter(|line| !line.starts_with("https://")) {
            assert!(line.chars().count() <= 72, "{name}: {line}");
        }
        for url in urls(&rendered.text).into_iter().filter(|url| !url.starts_with("https://status.")) {
            let alone = |at: &usize| lines[*at] == url && lines[at - 1].is_empty();
            let at = (1..lines.len()).find(alone).unwrap_or_else(|| panic!("{name}: {url} does not stand alone"));
            assert_eq!(lines.get(at + 1).copied().unwrap_or_default(), "", "{name}: {url}");
        }
        assert!(!rendered.text.contains("\n\n\n") && !rendered.text.contains(" \n"), "{name}");
    }
}

#[test]
fn a_text_ends_with_who_sent_it_and_why() {
    for (content, rendered) in rendered() {
        let end = rendered.text.trim_end().rsplit("\n\n").take(2).collect::<Vec<_>>();
        assert_eq!(end[0], HOME, "{content:?}");
        assert!(end[1].starts_with("Example ID sent this because "), "{content:?}: {}", end[1]);
    }
}

#[test]
fn subjects_say_what_happened_and_no_two_contents_share_one() {
    let mut of: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for (content, rendered) in rendered() {
        assert!(rendered.subject.chars().count() <= 78, "{}", rendered.subject);
        assert!(rendered.html.contains(&format!("<title>{}</title>", rendered.subject)), "{content:?}");
        of.entry(rendered.subject).or_default().insert(content.name());
    }
    assert!(of.values().all(|contents| contents.len() == 1), "{of:?}");
}

#[test]
fn the_same_content_gives_the_same_words() {
    let (one, other) = (renderer(), renderer());
    for content in Content::samples() {
        assert!(one.render(&content) == other.render(&content), "{content:?}");
    }
}

#[test]
fn a_recovery_links_its_undo_page_only_while_it_can_be_undone() {
    let undo = "https://id.example.com/undo/1";
    let page = "https://id.example.com/inbox/1";
    let of = |undo| AccountRecovered { handle: "ada".into(), at: at(), page: page.into(), undo };
    let undoable = renderer().render(&of(Some(undo.to_owned())).into()).unwrap();
    assert_eq!(urls(&undoable.text), [page, undo, HOME]);
    assert!(undoable.text.contains("undo it") && undoable.html.contains("undo it"));
    let settled = renderer().render(&of(None).into()).unwrap();
    assert_eq!(urls(&settled.text), [page, HOME]);
    assert!(!settled.text.contains("undo") && !settled.html.contains("undo"));
}

#[test]
fn an_alert_links_the_alerts_tab_only_while_one_is_served() {
    let alerts = "https://id.example.com/alerts";
    let (page, text) = ("https://id.example.com/inbox/1", "b".to_owned());
    let of = |alerts| Alert { handle: "ada".into(), title: "a".into(), text: text.clone(), page: page.into(), alerts };
    assert_eq!(urls(&renderer().render(&of(Some(alerts.into())).into()).unwrap().text), [page, alerts, HOME]);
    assert_eq!(urls(&renderer().render(&of(None).into()).unwrap().text), [page, HOME]);
}

#[test]
fn only_an_announcement_that_one_can_opt_out_of_says_how() {
    let essential = renderer().render(&announcement("x").into()).unwrap();
    assert!(!essential.text.contains("unsubscribe") && !essential.html.contains("unsubscribe"));
    let link = "https://id.example.com/u/1";
    let optional = Announcement { unsubscribe: Some(link.into()), ..announcement("x") };
    let optional = renderer().render(&optional.into()).unwrap();
    assert!(optional.text.contains(&format!("unsubscribe with this link:\n\n{link}\n")), "{}", optional.text);
    assert!(optional.html.contains(&format!("href=\"{link}\"")));
}

#[test]
fn an_announcements_line_breaks_are_kept() {
    let rendered = renderer().render(&announcement("One\r\ntwo\n- three\n\n\n\nfour").into()).unwrap();
    assert!(rendered.text.contains("\n\nOne\ntwo\n- three\n\nfour\n\n"), "{}", rendered.text);
    assert!(rendered.html.contains("One<br>two<br>- three</p>"), "{}", rendered.html);
    assert!(rendered.html.contains(">four</p>"), "{}", rendered.html);
}

#[test]
fn no_subject_holds_a_line_break_or_an_override() {
    let subject = "News\r\nBcc: eve@example.com\u{202e}\u{2028}\u{0}x";
    let content = Announcement { subject: subject.into(), ..announcement("x") };
    assert_eq!(renderer().render(&content.into()).unwrap().subject, "News Bcc: eve@example.com x");
    let letterhead = Letterhead { service: "Exa\r\nmple\u{202e} ID".into(), home: HOME.into() };
    let rendered = Renderer::new(&letterhead).unwrap().render(&passkey("x")).unwrap();
    assert_eq!(rendered.subject, "A passkey was added to your Exa mple ID account");
}

#[test]
fn a_passkeys_name_stays_within_its_sentence() {
    let rendered = renderer().render(&passkey("a\r\n\r\nOpen https://evil.example/\u{202e}\u{2066}")).unwrap();
    let paragraph = rendered.text.split("\n\n").nth(1).unwrap().replace('\n', " ");
    assert!(paragraph.starts_with("The passkey “a Open https://evil.example/” was added"), "{paragraph}");
    assert!(!rendered.html.contains("href=\"https://evil.example/"), "{}", rendered.html);
}

#[test]
fn a_link_that_is_none_is_refused_and_not_shown() {
    for link in ["", "javascript:alert(1)", "/verify", "https://id.example.com/a b", "https://id.example.com/\r\nx"] {
        let content = VerificationLink { handle: "ada".into(), link: link.into() };
        assert_eq!(renderer().render(&content.into()), Err(RenderError::Link { field: "link" }), "{link}");
    }
    for (service, home) in [("", HOME), ("\u{202e}", HOME), ("Example ID", "id.example.com"), ("Example ID", "")] {
        let letterhead = Letterhead { service: service.into(), home: home.into() };
        assert_eq!(Renderer::new(&letterhead).unwrap_err(), TemplateError::Letterhead, "{service} {home}");
    }
}

#[test]
fn what_is_printed_for_debugging_shows_nothing_of_a_message() {
    for (content, rendered) in rendered() {
        let shown = format!("{content:?} {rendered:?}");
        assert!(!shown.contains("ada") && !shown.contains("https"), "{shown}");
    }
    let content = RecoveryLink { handle: "ada".into(), link: "https://a/#secret".into(), expires_at: at() };
    assert_eq!(format!("{content:?}"), "RecoveryLink");
}
