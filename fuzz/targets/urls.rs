//! A URL that somebody registers: refused, or in a normal form that is https, small, without user, and stable.
#![no_main]

use std::net::{IpAddr, SocketAddr};

use libfuzzer_sys::fuzz_target;
use postrider::outbound::{AddressPolicy, Destination};

fuzz_target!(|raw: &str| {
    let Ok(destination) = Destination::parse(raw) else { return };
    let normal = destination.as_str();
    assert!(normal.starts_with("https://") && normal.len() <= 8192 && normal.is_ascii());
    assert!(normal.bytes().all(|byte| byte.is_ascii_graphic()));
    assert!(!normal.contains('#'));
    for url in [raw, normal] {
        let (_, rest) = url.split_once("://").expect("absolute");
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        assert!(!authority.contains(['@', '\\']), "no user");
    }
    assert_ne!(destination.port(), 0);

    let again = Destination::parse(normal).expect("a normal form is taken again");
    assert_eq!(again.as_str(), normal);
    assert_eq!((again.host(), again.port()), (destination.host(), destination.port()));

    let host = destination.host().to_string();
    assert!(!host.ends_with('.') && host != "localhost");
    if let Ok(literal) = host.trim_matches(['[', ']']).parse::<IpAddr>() {
        assert!(AddressPolicy::default().admit(SocketAddr::new(literal, 443)).is_ok());
    }
});
