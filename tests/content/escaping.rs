//! Whatever people chose as a name or wrote as a text, a page shows it and does no more.

use postrider::content::{Alert, Announcement, Content, NewSignIn, PasskeyAdded};
use proptest::prelude::*;

use crate::page::{Page, words};
use crate::support::{HOME, renderer};

const PAGE: &str = "https://id.example.com/inbox/1?a=b&c=d";

fn alert(title: &str, text: &str) -> Content {
    let (title, text) = (title.into(), text.into());
    Alert { handle: "ada".into(), title, text, page: PAGE.into(), alerts: None }.into()
}

const HOSTILE: [&str; 7] = [
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>",
    "' onmouseover='alert(1)",
    "{{letter.home}} {{{title}}} {{> layout}}",
    "&lt;b&gt; &amp; & <b>",
    "</title><style>*{display:none}</style>",
    "<!-- ]]> <![CDATA[",
];

#[test]
fn hostile_names_and_texts_are_shown_as_they_are() {
    let at = "2026-02-03T04:05:06Z".parse().unwrap();
    let harmless = Page::parse(&renderer().render(&alert("x", "x")).unwrap().html).tags;
    for hostile in HOSTILE {
        let page = Page::parse(&renderer().render(&alert(hostile, hostile)).unwrap().html);
        assert_eq!(page.tags, harmless, "{hostile}");
        assert_eq!(page.shown.matches(&words(hostile)).count(), 3, "title, heading and text: {}", page.shown);
        let sign_in = NewSignIn { handle: hostile.into(), device: hostile.into(), at, page: PAGE.into() };
        let passkey = PasskeyAdded { handle: hostile.into(), passkey: hostile.into(), at, page: PAGE.into() };
        for content in [sign_in.into(), passkey.into()] {
            let rendered = renderer().render(&content).unwrap();
            assert_eq!(Page::parse(&rendered.html).shown.matches(&words(hostile)).count(), 2, "{content:?}");
            assert_eq!(
                words(&rendered.text).matches(&words(hostile)).count(),
                2,
                "{content:?}: a text escapes nothing"
            );
        }
    }
}

#[test]
fn a_links_ampersands_arrive_as_they_were() {
    let rendered = renderer().render(&alert("x", "x")).unwrap();
    assert_eq!(Page::parse(&rendered.html).targets, [PAGE, PAGE, HOME]);
    assert!(rendered.text.contains(&format!("\n\n{PAGE}\n\n")), "{}", rendered.text);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_text_is_shown_and_only_its_own_links_are_followed(
        text in "(https://a\\.example/|[<>&\"'={}/ \n@a-c]|\\PC){0,40}",
    ) {
        let page = "https://id.example.com/inbox/1".into();
        let content = Announcement { handle: "ada".into(), subject: "s".into(), text: text.clone(), page, unsubscribe: None };
        let rendered = renderer().render(&content.into()).unwrap();
        let page = Page::parse(&rendered.html);
        let shown = |text: &str| text.chars().filter(|c| c.is_alphanumeric() || c.is_ascii_graphic()).collect::<String>();
        prop_assert!(shown(&page.shown).contains(&shown(&text)), "{:?} in {:?}", text, page.shown);
        prop_assert!(page.links.iter().all(|(target, text)| target == text), "{:?}", page.links);
    }
}
