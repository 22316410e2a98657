//! Where links lead.

use postrider::identity::{AccountId, AddressId, NotificationId, RecoveryId};
use postrider::links::{Page, Pages, PagesError};
use uuid::Uuid;

use crate::link_tokens::keys;

#[test]
fn each_page_has_a_link_below_the_base() {
    let id = Uuid::now_v7();
    let keys = keys(&[1]);
    let token = keys.verification_token(AddressId(id));
    let unsubscribe = keys.unsubscribe_token(AccountId(id));
    for (base, below) in [
        ("https://id.example", "https://id.example"),
        ("https://ID.example:443/", "https://id.example"),
        ("https://id.example/auth/", "https://id.example/auth"),
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
        ("http://[::1]:8080", "http://[::1]:8080"),
        ("http://localhost", "http://localhost"),
    ] {
        let pages = Pages::new(base).unwrap();
        assert_eq!(pages.home().trim_end_matches('/'), below);
        assert_eq!(pages.verification(&token), format!("{below}/email/verify/{}", token.as_str()));
        assert_eq!(pages.recovery(&token), format!("{below}/recover/{}", token.as_str()));
        assert_eq!(pages.notification(NotificationId(id)), format!("{below}/notifications/{id}"));
        assert_eq!(pages.undo(RecoveryId(id)), format!("{below}/recoveries/{id}/undo"));
        assert_eq!(pages.unsubscribe(&unsubscribe), format!("{below}/unsubscribe/{unsubscribe}"));
        assert_eq!(pages.alerts(), None);
    }
}

#[test]
fn a_base_that_no_link_can_be_made_of_is_refused() {
    let long = format!("https://id.example/{}", "a".repeat(900));
    for (base, problem) in [
        ("", PagesError::NotAbsolute),
        ("/account", PagesError::NotAbsolute),
        ("https://", PagesError::NotAbsolute),
        ("mailto:a@id.example", PagesError::NotAbsolute),
        ("http://id.example", PagesError::Scheme),
        ("http://10.0.0.1", PagesError::Scheme),
        ("http://127.0.0.1.id.example", PagesError::Scheme),
        ("ftp://localhost", PagesError::Scheme),
        ("https://user@id.example", PagesError::MoreThanAPath),
        ("https://:secret@id.example", PagesError::MoreThanAPath),
        ("https://id.example/?a=b", PagesError::MoreThanAPath),
        ("https://id.example/#a", PagesError::MoreThanAPath),
        ("https://id.example/a,b", PagesError::BaseCharacter),
        ("https://id.example/a|b", PagesError::BaseCharacter),
        (&long, PagesError::TooLong(Page::Verification)),
    ] {
        assert_eq!(Pages::new(base).unwrap_err(), problem, "{base}");
    }
}

#[test]
fn a_path_is_settable_and_holds_its_placeholder_once() {
    let pages = Pages::new("https://id.example/auth").unwrap();
    let token = keys(&[1]).verification_token(AddressId(Uuid::nil()));
    let set = |page, path: &str| pages.clone().with_path(page, path);
    let with_script = set(Page::Verification, "/verify#token={token}").unwrap();
    assert_eq!(with_script.verification(&token), format!("https://id.example/auth/verify#token={}", token.as_str()));
    let alerts = set(Page::Alerts, "/inbox?tab=alerts").unwrap().alerts();
    assert_eq!(alerts.as_deref(), Some("https://id.example/auth/inbox?tab=alerts"));
    set(Page::Undo, "/undo?recovery={id}").unwrap();
    set(Page::Unsubscribe, "/u?t={token}").unwrap();

    let needs = |page, placeholder| PagesError::Placeholder { page, placeholder };
    let long = format!("/{}/{{id}}", "a".repeat(850));
    for (page, path, problem) in [
        (Page::Recovery, "recover/{token}", PagesError::NoSlash(Page::Recovery)),
        (Page::Recovery, "https://evil.example/{token}", PagesError::NoSlash(Page::Recovery)),
        (Page::Recovery, "/recover", needs(Page::Recovery, Some("{token}"))),
        (Page::Recovery, "/{token}/{token}", needs(Page::Recovery, Some("{token}"))),
        (Page::Recovery, "/{id}", needs(Page::Recovery, Some("{token}"))),
        (Page::Notification, "/{token}", needs(Page::Notification, Some("{id}"))),
        (Page::Alerts, "/alerts/{id}", needs(Page::Alerts, None)),
        (Page::Unsubscribe, "/u#{token}", PagesError::Fragment),
        (Page::Recovery, "/a b/{token}", PagesError::PathCharacter(Page::Recovery)),
        (Page::Recovery, "/a,b/{token}", PagesError::PathCharacter(Page::Recovery)),
        (Page::Recovery, "/a>b/{token}", PagesError::PathCharacter(Page::Recovery)),
        (Page::Recovery, "/a\r\nX: b/{token}", PagesError::PathCharacter(Page::Recovery)),
        (Page::Recovery, "/é/{token}", PagesError::PathCharacter(Page::Recovery)),
        (Page::Recovery, "/../{token}", PagesError::PathCharacter(Page::Recovery)),
        (Page::Undo, &long, PagesError::TooLong(Page::Undo)),
    ] {
        assert_eq!(set(page, path).unwrap_err(), problem, "{path}");
    }
}
