//! Which checks of the logout token list a token fails, found without any code of ours.

use std::collections::BTreeSet;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::jwk::JwkSet;
use jsonwebtoken::{Algorithm, DecodingKey};
use postrider::signing::SigningAlgorithm;
use serde_json::{Map, Value, json};

use crate::support::{CLIENT_ID, ISSUER, SID, SUB, delivery};

const EVENT: &str = "http://schemas.openid.net/event/backchannel-logout";
const CLAIMS: [&str; 8] = ["iss", "sub", "aud", "iat", "exp", "jti", "events", "sid"];

/// A token taken apart, before anything in it is believed.
pub struct Parts {
    pub header: Map<String, Value>,
    pub claims: Map<String, Value>,
}

/// What the receiver knows beforehand.
pub struct Expected {
    pub algorithm: SigningAlgorithm,
    pub sub: Option<&'static str>,
    pub sid: Option<&'static str>,
}

impl Expected {
    pub fn of(algorithm: SigningAlgorithm) -> Self {
        Self { algorithm, sub: Some(SUB), sid: Some(SID) }
    }
}

/// Check 1: three parts, base64url without padding, the first two JSON objects.
pub fn take_apart(token: &str) -> Option<Parts> {
    let parts: Vec<Vec<u8>> = token.split('.').map(|part| URL_SAFE_NO_PAD.decode(part).ok()).collect::<Option<_>>()?;
    let [header, claims, _signature] = parts.as_slice() else { return None };
    Some(Parts { header: serde_json::from_slice(header).ok()?, claims: serde_json::from_slice(claims).ok()? })
}

/// The numbers of the failed checks: of the list's 33, the ones that can be seen on a token.
pub fn failed_checks(token: &str, jwks: &Value, expected: &Expected) -> BTreeSet<u8> {
    let Some(Parts { header, claims }) = take_apart(token) else { return BTreeSet::from([1]) };
    let text = |name: &str| claims.get(name).and_then(Value::as_str);
    let seconds = |name: &str| claims.get(name).and_then(Value::as_i64);
    let lifetime = seconds("exp").zip(seconds("iat")).map(|(exp, iat)| exp - iat);
    let audience = claims.get("aud").cloned().unwrap_or_default();
    let events = claims.get("events").and_then(Value::as_object);
    let event = events.and_then(|events| events.get(EVENT));
    let alg = header.get("alg").and_then(Value::as_str).unwrap_or_default();
    let present = |name: &str| text(name).is_some_and(|value| !value.is_empty());

    let checks = [
        (2, !alg.is_empty() && !alg.eq_ignore_ascii_case("none")),
        (3, is_signed_by_a_published_key(token, &header, jwks) && header.len() == 3),
        (4, alg == expected.algorithm.as_str()),
        (5, header.get("typ") == Some(&json!("logout+jwt"))),
        (6, text("iss") == Some(ISSUER)),
        (7, audience == CLIENT_ID || audience.as_array().is_some_and(|all| all.contains(&json!(CLIENT_ID)))),
        (8, audience == CLIENT_ID || audience == json!([CLIENT_ID])),
        (9, seconds("iat").is_some()),
        (10, lifetime.is_some_and(|lifetime| lifetime > 0)),
        (11, lifetime.is_some_and(|lifetime| lifetime <= 120)),
        (13, text("jti") == Some(delivery().to_string().as_str())),
        (14, event.is_some() && events.is_some_and(|events| events.len() == 1)),
        (15, event == Some(&json!({}))),
        (16, present("sub") || present("sid")),
        (17, claims.get("sid").map(Value::as_str) == expected.sid.map(Some)),
        (19, claims.get("sub").map(Value::as_str) == expected.sub.map(Some)),
        (20, !claims.contains_key("nonce")),
        (21, claims.keys().all(|name| CLAIMS.contains(&name.as_str()))),
    ];
    checks.into_iter().filter(|(_, holds)| !holds).map(|(number, _)| number).collect()
}

/// By jsonwebtoken, with the key that `kid` names and the algorithm that is published for it.
fn is_signed_by_a_published_key(token: &str, header: &Map<String, Value>, jwks: &Value) -> bool {
    let jwks: JwkSet = serde_json::from_value(jwks.clone()).unwrap();
    let Some(jwk) = header.get("kid").and_then(Value::as_str).and_then(|kid| jwks.find(kid)) else { return false };
    let algorithm = Algorithm::try_from(jwk.common.key_algorithm.unwrap()).unwrap();
    let Some((message, signature)) = token.rsplit_once('.') else { return false };
    let key = DecodingKey::from_jwk(jwk).unwrap();
    jsonwebtoken::crypto::verify(signature, message.as_bytes(), &key, algorithm).unwrap_or(false)
}
