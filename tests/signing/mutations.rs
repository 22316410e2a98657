//! C27: what a logout token must not be. Each mutation is signed with the right key (or is about the signature), and
//! the checker that the other tests rely on must refuse it for the right reason: so the checker itself can fail.

use postrider::signing::SigningAlgorithm;
use serde_json::{Map, Value, json};

use crate::checker::{Expected, Parts, failed_checks, take_apart};
use crate::forge;
use crate::support::{CLIENT_ID, keys, token};

/// How a token is spoilt.
pub enum Spoil {
    /// Its header, then signed.
    Header(fn(&mut Map<String, Value>)),
    /// Its claims, then signed.
    Claims(fn(&mut Map<String, Value>)),
    /// The signed text.
    Text(fn(&Parts, &str) -> String),
}

/// One way to spoil a token, and the check that it fails.
pub struct Mutation {
    pub check: u8,
    pub what: &'static str,
    spoil: Spoil,
}

impl Mutation {
    /// A token of `algorithm`, spoilt.
    pub fn apply(&self, algorithm: SigningAlgorithm) -> String {
        let good = token().sign(&keys(), algorithm).unwrap();
        let mut parts = take_apart(&good).unwrap();
        match self.spoil {
            Spoil::Header(spoil) => spoil(&mut parts.header),
            Spoil::Claims(spoil) => spoil(&mut parts.claims),
            Spoil::Text(spoil) => return spoil(&parts, &good),
        }
        forge::signed(&parts.header, &Value::Object(parts.claims), algorithm)
    }
}

fn header(check: u8, what: &'static str, spoil: fn(&mut Map<String, Value>)) -> Mutation {
    Mutation { check, what, spoil: Spoil::Header(spoil) }
}

fn claims(check: u8, what: &'static str, spoil: fn(&mut Map<String, Value>)) -> Mutation {
    Mutation { check, what, spoil: Spoil::Claims(spoil) }
}

fn text(check: u8, what: &'static str, spoil: fn(&Parts, &str) -> String) -> Mutation {
    Mutation { check, what, spoil: Spoil::Text(spoil) }
}

fn set(object: &mut Map<String, Value>, name: &str, value: Value) {
    object.insert(name.to_owned(), value);
}

const EVENT: &str = "http://schemas.openid.net/event/backchannel-logout";

/// Every mutation: of the signature and the header, of the claims.
pub fn all() -> Vec<Mutation> {
    let mut all = of_signature_and_header();
    all.extend(of_the_claims());
    all.extend(of_the_events());
    all
}

/// The mutations that could fare differently with another algorithm.
pub fn of_signature_and_header() -> Vec<Mutation> {
    let mut all = of_the_text();
    all.extend(of_the_header());
    all
}

fn of_the_text() -> Vec<Mutation> {
    vec![
        text(1, "padded", |_, good| format!("{good}=")),
        text(1, "two parts", |_, good| good.rsplit_once('.').unwrap().0.to_owned()),
        text(1, "four parts", |_, good| format!("{good}.AA")),
        text(1, "claims are an array", |parts, _| format!("{}.AA", forge::unsigned(&parts.header, &json!([1])))),
        text(1, "empty", |_, _| String::new()),
        text(2, "alg none, unsigned", |parts, _| {
            let mut header = parts.header.clone();
            set(&mut header, "alg", json!("none"));
            format!("{}.", forge::unsigned(&header, &Value::Object(parts.claims.clone())))
        }),
        text(3, "signature left out", |_, good| format!("{}.", good.rsplit_once('.').unwrap().0)),
        text(3, "signature of another token", |parts, good| {
            let mut claims = parts.claims.clone();
            set(&mut claims, "sub", json!("somebody else"));
            let signature = good.rsplit_once('.').unwrap().1;
            format!("{}.{signature}", forge::unsigned(&parts.header, &Value::Object(claims)))
        }),
        text(3, "one bit of the signature changed", |_, good| {
            let (message, signature) = good.rsplit_once('.').unwrap();
            let first = if signature.starts_with('A') { 'B' } else { 'A' };
            format!("{message}.{first}{}", &signature[1..])
        }),
        text(3, "HMAC by the kid", |parts, _| {
            let mut header = parts.header.clone();
            set(&mut header, "alg", json!("HS256"));
            let secret = header["kid"].as_str().unwrap().to_owned();
            forge::signed_with_secret(&header, &Value::Object(parts.claims.clone()), secret.as_bytes())
        }),
    ]
}

fn of_the_header() -> Vec<Mutation> {
    vec![
        header(2, "alg missing", |header| drop(header.remove("alg"))),
        header(3, "kid missing", |header| drop(header.remove("kid"))),
        header(3, "kid of no published key", |header| set(header, "kid", json!("2019-key"))),
        header(3, "its own key in the header", |header| set(header, "jwk", json!({ "kty": "oct", "k": "AA" }))),
        header(3, "a key to fetch in the header", |header| set(header, "jku", json!("https://evil.example/jwks"))),
        header(4, "alg of another curve", |header| set(header, "alg", json!("ES384"))),
        header(5, "typ missing", |header| drop(header.remove("typ"))),
        header(5, "typ JWT", |header| set(header, "typ", json!("JWT"))),
        header(5, "typ with the application/ prefix", |header| set(header, "typ", json!("application/logout+jwt"))),
    ]
}

fn of_the_claims() -> Vec<Mutation> {
    vec![
        claims(6, "iss missing", |claims| drop(claims.remove("iss"))),
        claims(6, "iss with a slash more", |claims| set(claims, "iss", json!("https://id.example.com/tenant/a/"))),
        claims(7, "aud missing", |claims| drop(claims.remove("aud"))),
        claims(7, "aud of another client", |claims| set(claims, "aud", json!("client-0000"))),
        claims(8, "aud of two clients", |claims| set(claims, "aud", json!([CLIENT_ID, "client-0000"]))),
        claims(9, "iat missing", |claims| drop(claims.remove("iat"))),
        claims(9, "iat as text", |claims| set(claims, "iat", json!("1772366400"))),
        claims(10, "exp missing", |claims| drop(claims.remove("exp"))),
        claims(10, "exp as text", |claims| set(claims, "exp", json!("2026-03-01T12:02:00Z"))),
        claims(10, "exp at iat", |claims| {
            let iat = claims["iat"].clone();
            set(claims, "exp", iat);
        }),
        claims(11, "exp a second too late", |claims| {
            let exp = claims["iat"].as_i64().unwrap() + 121;
            set(claims, "exp", json!(exp));
        }),
        claims(13, "jti missing", |claims| drop(claims.remove("jti"))),
        claims(13, "jti empty", |claims| set(claims, "jti", json!(""))),
        claims(13, "jti a number", |claims| set(claims, "jti", json!(7))),
        claims(16, "neither sub nor sid", |claims| {
            claims.remove("sub");
            claims.remove("sid");
        }),
        claims(16, "sub and sid empty", |claims| {
            set(claims, "sub", json!(""));
            set(claims, "sid", json!(""));
        }),
        claims(17, "sid null", |claims| set(claims, "sid", Value::Null)),
        claims(19, "sub null", |claims| set(claims, "sub", Value::Null)),
        claims(19, "sub a number", |claims| set(claims, "sub", json!(42))),
        claims(20, "a nonce", |claims| set(claims, "nonce", json!("n-0S6_WzA2Mj"))),
        claims(20, "a nonce that is null", |claims| set(claims, "nonce", Value::Null)),
        claims(21, "an e-mail address", |claims| set(claims, "email", json!("a@example.com"))),
        claims(21, "a name", |claims| set(claims, "name", json!("A"))),
        claims(21, "event instead of events", |claims| {
            let events = claims.remove("events").unwrap();
            set(claims, "event", events);
        }),
    ]
}

fn of_the_events() -> Vec<Mutation> {
    vec![
        claims(14, "events missing", |claims| drop(claims.remove("events"))),
        claims(14, "events null", |claims| set(claims, "events", Value::Null)),
        claims(14, "events a text", |claims| set(claims, "events", json!(EVENT))),
        claims(14, "events an array", |claims| set(claims, "events", json!([EVENT]))),
        claims(14, "events empty", |claims| set(claims, "events", json!({}))),
        claims(14, "the event with https", |claims| {
            set(claims, "events", json!({ EVENT.replace("http:", "https:"): {} }))
        }),
        claims(14, "another event with it", |claims| set(claims, "events", json!({ EVENT: {}, "urn:other": {} }))),
        claims(15, "the event null", |claims| set(claims, "events", json!({ EVENT: null }))),
        claims(15, "the event an array", |claims| set(claims, "events", json!({ EVENT: [] }))),
        claims(15, "the event a text", |claims| set(claims, "events", json!({ EVENT: "" }))),
        claims(15, "the event with a member", |claims| set(claims, "events", json!({ EVENT: { "reason": "x" } }))),
    ]
}

#[test]
fn c27_a_token_spoilt_in_any_forbidden_way_is_refused_for_that_reason() {
    let jwks = keys().jwks();
    for algorithm in SigningAlgorithm::ALL {
        for mutation in all() {
            let failed = failed_checks(&mutation.apply(algorithm), &jwks, &Expected::of(algorithm));
            assert!(failed.contains(&mutation.check), "{algorithm}: {}: failed {failed:?}", mutation.what);
        }
    }
}

#[test]
fn c27_a_forged_token_that_is_not_spoilt_passes() {
    // Or the mutations would be refused for being forged and not for what was changed.
    let unspoilt = claims(0, "nothing", |_| ());
    for algorithm in SigningAlgorithm::ALL {
        let failed = failed_checks(&unspoilt.apply(algorithm), &keys().jwks(), &Expected::of(algorithm));
        assert!(failed.is_empty(), "{algorithm}: failed {failed:?}");
    }
}

#[test]
fn c27_every_check_of_a_token_has_a_mutation_that_fails_it() {
    let covered: std::collections::BTreeSet<u8> = all().iter().map(|mutation| mutation.check).collect();
    let checked = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 14, 15, 16, 17, 19, 20, 21];
    assert_eq!(covered, checked.into());
}
