//! Which URLs may be posted to.

use postrider::outbound::{AddressPolicy, Destination, DestinationError};
use postrider_actors::Reason;
use proptest::prelude::*;

use crate::support::{rows, unescape};

/// The vectors' word for a kind.
fn kind(error: DestinationError) -> &'static str {
    match error {
        DestinationError::Scheme => "scheme",
        DestinationError::NotAbsolute => "not_absolute",
        DestinationError::BadSyntax => "bad_syntax",
        DestinationError::Userinfo => "userinfo",
        DestinationError::Port => "port",
        DestinationError::BadHost => "bad_host",
        DestinationError::RefusedAddress => "destination",
        DestinationError::Fragment => "fragment",
        DestinationError::BadChar => "bad_char",
        DestinationError::TooLong => "too_long",
    }
}

#[test]
fn every_url_is_accepted_or_refused_with_the_kind_that_the_vectors_name() {
    let wrong: Vec<String> = rows("urls.csv")
        .into_iter()
        .filter_map(|row| {
            let url = unescape(&row["url"]);
            let verdict = match Destination::parse(&url) {
                Ok(_) => ("accept", ""),
                Err(error) => ("refuse", kind(error)),
            };
            let right = verdict == (&*row["verdict"], &*row["error_kind"]);
            let shown: String = row["url"].chars().take(80).collect();
            (!right).then(|| format!("{shown}: {verdict:?}, expected {} {}", row["verdict"], row["error_kind"]))
        })
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_stored_form_is_the_normal_one() {
    for (raw, normal) in [
        ("HTTPS://EXAMPLE.com:443/Path", "https://example.com/Path"),
        ("https://example.com", "https://example.com/"),
        ("https://example.com:/", "https://example.com/"),
        ("https://example.com:00443/?", "https://example.com/?"),
        ("https://example.com.:8443/a?b=%20c", "https://example.com:8443/a?b=%20c"),
        ("https://b\u{fc}cher.example/\u{e9}", "https://xn--bcher-kva.example/%C3%A9"),
        ("https://fa\u{df}.example/", "https://xn--fa-hia.example/"),
        ("https://exam\u{ad}ple.com/", "https://example.com/"),
        ("https://8.8.8.8/x", "https://8.8.8.8/x"),
        ("https://[2606:4700:4700:0::1111]:444/x", "https://[2606:4700:4700::1111]:444/x"),
        ("https://example.com/a/b?c=d&e=f", "https://example.com/a/b?c=d&e=f"),
    ] {
        assert_eq!(Destination::parse(raw).unwrap().as_str(), normal, "{raw}");
    }
}

#[test]
fn a_normal_form_is_not_longer_than_what_is_taken() {
    let grows_when_encoded = format!("https://example.com/{}", "\u{e9}".repeat(3000));
    assert!(grows_when_encoded.len() < 8192);
    assert_eq!(Destination::parse(&grows_when_encoded), Err(DestinationError::TooLong));
    let longest = format!("https://example.com/{}", "a".repeat(8192 - 20));
    assert_eq!(longest.len(), 8192);
    assert_eq!(Destination::parse(&longest).unwrap().as_str(), longest);
    assert_eq!(Destination::parse(&format!("{longest}a")), Err(DestinationError::TooLong));
}

#[test]
fn localhost_is_taken_only_where_the_policy_admits_loopback() {
    let loopback = AddressPolicy::allowing_networks_for_tests_and_demos(vec!["127.0.0.0/8".parse().unwrap()]);
    for url in ["https://localhost:8443/", "https://rp.localhost/", "https://127.0.0.1:9/"] {
        assert_eq!(Destination::parse(url), Err(DestinationError::RefusedAddress), "{url}");
        assert!(Destination::parse_with(url, &loopback).is_ok(), "{url}");
    }
    assert!(Destination::parse_with("https://10.0.0.1/", &loopback).is_err());
    assert!(Destination::parse_with("https://0x7f.1/", &loopback).is_err(), "an unusual spelling is never stored");
}

#[test]
fn neither_an_error_nor_a_debug_text_shows_any_of_the_url() {
    for url in ["https://SECRET123:pw@example.com/", "http://SECRET123/", "https://SECRET123/#SECRET123"] {
        let error = Destination::parse(url).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("SECRET123"), "{url}");
        assert_eq!(Reason::from(error), Reason::RefusedDestination);
    }
    let taken = Destination::parse("https://example.com/hook?token=SECRET123").unwrap();
    assert!(!format!("{taken:?}").contains("example"));
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic_and_every_normal_form_parses_to_itself(
        text in prop_oneof![
            ".{0,60}",
            "https://[a-z0-9.:@%\\[\\]_-]{1,30}[/?#]?.{0,30}",
            "https://[a-z]{1,9}\\.[a-z]{2,5}(:[0-9]{1,6})?/.{0,40}",
        ]
    ) {
        if let Ok(taken) = Destination::parse(&text) {
            let again = Destination::parse(taken.as_str()).unwrap();
            prop_assert_eq!(again.as_str(), taken.as_str());
            prop_assert_eq!(again, taken);
        }
    }
}
