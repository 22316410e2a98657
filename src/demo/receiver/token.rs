//! Validation of a logout token as a client must do it (OpenID Connect Back-Channel Logout 1.0, 2.6), from the published
//! key set and nothing else.

use std::collections::HashMap;

use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents, UnparsedPublicKey,
};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, Utc};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::signing::{BACKCHANNEL_LOGOUT_EVENT, LOGOUT_TOKEN_LIFETIME, LOGOUT_TOKEN_TYPE, SigningAlgorithm};

/// How far the sender's clock may be ahead, in seconds.
const CLOCK_SKEW: i64 = 5;

/// Public keys by their id.
#[derive(Debug)]
pub(in crate::demo) struct Jwks(HashMap<String, PublicKey>);

#[derive(Debug)]
enum PublicKey {
    /// An uncompressed point.
    P256(Vec<u8>),
    Rsa {
        n: Vec<u8>,
        e: Vec<u8>,
    },
    Ed25519(Vec<u8>),
}

impl Jwks {
    /// Reads a key set (RFC 7517 5); keys of other kinds are left out.
    pub(in crate::demo) fn read(set: &Value) -> Self {
        let keys = set.get("keys").and_then(Value::as_array);
        Self(keys.into_iter().flatten().filter_map(PublicKey::read).collect())
    }
}

impl PublicKey {
    fn read(jwk: &Value) -> Option<(String, Self)> {
        let text = |name: &str| jwk.get(name).and_then(Value::as_str);
        let bytes = |name: &str| text(name).and_then(decode);
        let key = match (text("kty")?, text("crv")) {
            ("EC", Some("P-256")) => Self::P256([vec![4], bytes("x")?, bytes("y")?].concat()),
            ("RSA", None) => Self::Rsa { n: bytes("n")?, e: bytes("e")? },
            ("OKP", Some("Ed25519")) => Self::Ed25519(bytes("x")?),
            _ => return None,
        };
        Some((text("kid")?.to_owned(), key))
    }

    const fn algorithm(&self) -> SigningAlgorithm {
        match self {
            Self::P256(_) => SigningAlgorithm::Es256,
            Self::Rsa { .. } => SigningAlgorithm::Rs256,
            Self::Ed25519(_) => SigningAlgorithm::EdDsa,
        }
    }

    fn has_signed(&self, message: &[u8], signature: &[u8]) -> bool {
        let verified = match self {
            Self::P256(point) => UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(message, signature),
            Self::Rsa { n, e } => {
                RsaPublicKeyComponents { n, e }.verify(&RSA_PKCS1_2048_8192_SHA256, message, signature)
            }
            Self::Ed25519(key) => UnparsedPublicKey::new(&ED25519, key).verify(message, signature),
        };
        verified.is_ok()
    }
}

/// What a client knows beforehand.
#[derive(Debug)]
pub(super) struct Expected<'a> {
    pub(super) issuer: &'a str,
    pub(super) client_id: &'a str,
    pub(super) algorithm: SigningAlgorithm,
    pub(super) now: DateTime<Utc>,
}

/// What a client does something with.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Accepted {
    pub(super) jti: Uuid,
    pub(super) sid: Uuid,
}

/// The token's jti and sid where all of it is good, or the first fault.
pub(super) fn validate(token: &str, jwks: &Jwks, expected: &Expected<'_>) -> Result<Accepted, &'static str> {
    let (message, signature) = token.rsplit_once('.').ok_or("no token")?;
    let (header, claims) = message.split_once('.').ok_or("no token")?;
    let (header, claims) = (object(header).ok_or("header unreadable")?, object(claims).ok_or("claims unreadable")?);
    let signature = decode(signature).ok_or("signature unreadable")?;

    check(text(&header, "typ") == Some(LOGOUT_TOKEN_TYPE), "typ")?;
    check(text(&header, "alg") == Some(expected.algorithm.as_str()), "alg")?;
    let key = text(&header, "kid").and_then(|kid| jwks.0.get(kid)).ok_or("kid")?;
    check(key.algorithm() == expected.algorithm, "alg of the key")?;
    check(key.has_signed(message.as_bytes(), &signature), "signature")?;

    check(text(&claims, "iss") == Some(expected.issuer), "iss")?;
    check(text(&claims, "aud") == Some(expected.client_id), "aud")?;
    let number = |name: &str| claims.get(name).and_then(Value::as_i64);
    let (iat, exp) = (number("iat").ok_or("iat")?, number("exp").ok_or("exp")?);
    check(iat <= expected.now.timestamp() + CLOCK_SKEW, "iat")?;
    check(exp > expected.now.timestamp() && exp - iat <= LOGOUT_TOKEN_LIFETIME.num_seconds(), "exp")?;
    let event = claims.get("events").and_then(|events| events.get(BACKCHANNEL_LOGOUT_EVENT));
    check(event.is_some_and(Value::is_object), "events")?;
    check(!claims.contains_key("nonce"), "nonce")?;
    check(text(&claims, "sub").is_some_and(|sub| !sub.is_empty()), "sub")?;
    let uuid = |name: &str| text(&claims, name).and_then(|text| Uuid::try_parse(text).ok());
    Ok(Accepted { jti: uuid("jti").ok_or("jti")?, sid: uuid("sid").ok_or("sid")? })
}

fn check(holds: bool, fault: &'static str) -> Result<(), &'static str> {
    if holds { Ok(()) } else { Err(fault) }
}

fn text<'a>(object: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    object.get(name).and_then(Value::as_str)
}

fn object(part: &str) -> Option<Map<String, Value>> {
    serde_json::from_slice(&decode(part)?).ok()
}

fn decode(base64url: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(base64url).ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use postrider_actors::DeliveryId;
    use serde_json::json;

    use super::*;
    use crate::signing::{LogoutSubject, LogoutToken, SigningKey, SigningKeys};

    const ISSUER: &str = "https://id.example.com";
    const SID: &str = "0190b5a4-8c7e-7c3a-9d52-3f1e6a7b8c9d";

    fn keys() -> SigningKeys {
        SigningKeys::new(SigningAlgorithm::ALL.map(|algorithm| SigningKey::generate(algorithm).unwrap()).into())
            .unwrap()
    }

    fn token() -> LogoutToken<'static> {
        let subject = LogoutSubject::new(Some("account"), Some(SID)).unwrap();
        let (delivery, issued_at) = (DeliveryId::generate(), Utc::now());
        LogoutToken { issuer: ISSUER, client_id: "client", subject, delivery, issued_at }
    }

    fn expected(algorithm: SigningAlgorithm) -> Expected<'static> {
        Expected { issuer: ISSUER, client_id: "client", algorithm, now: Utc::now() }
    }

    #[test]
    fn a_good_token_of_every_algorithm_is_accepted_and_one_of_other_keys_is_not() {
        let (keys, others) = (keys(), keys());
        for algorithm in SigningAlgorithm::ALL {
            let (token, expected) = (token(), expected(algorithm));
            let signed = token.sign(&keys, algorithm).unwrap();
            let accepted = Accepted { jti: token.delivery.as_uuid(), sid: SID.parse().unwrap() };
            assert_eq!(validate(&signed, &Jwks::read(&keys.jwks()), &expected), Ok(accepted));
            assert_eq!(validate(&signed, &Jwks::read(&others.jwks()), &expected), Err("kid"));
            let other = SigningAlgorithm::ALL.into_iter().find(|other| *other != algorithm).unwrap();
            let of_another = Expected { algorithm: other, ..expected };
            assert_eq!(validate(&signed, &Jwks::read(&keys.jwks()), &of_another), Err("alg"));
        }
    }

    #[test]
    fn a_token_with_one_thing_wrong_is_refused_for_it() {
        let keys = keys();
        let jwks = Jwks::read(&keys.jwks());
        let now = Utc::now();
        let good = json!({
            "iss": ISSUER, "aud": "client", "iat": now.timestamp(), "exp": now.timestamp() + 120, "jti": SID,
            "events": { BACKCHANNEL_LOGOUT_EVENT: {} }, "sub": "account", "sid": SID,
        });
        let judge = |typ: &str, claims: &Value| {
            let signed = keys.signer(SigningAlgorithm::Es256).unwrap().sign_jwt(typ, claims).unwrap();
            validate(&signed, &jwks, &expected(SigningAlgorithm::Es256)).map(|_| ())
        };
        assert_eq!(judge(LOGOUT_TOKEN_TYPE, &good), Ok(()));
        assert_eq!(judge("JWT", &good), Err("typ"));
        for (claim, wrong) in [
            ("iss", json!("https://id.example.com/")),
            ("aud", json!("another")),
            ("iat", json!(now.timestamp() + 60)),
            ("exp", json!(now.timestamp() - 1)),
            ("exp", json!(now.timestamp() + 300)),
            ("events", json!({})),
            ("nonce", json!("n")),
            ("sub", json!("")),
            ("jti", json!("again")),
            ("sid", json!(null)),
        ] {
            let mut claims = good.clone();
            claims[claim] = wrong;
            assert_eq!(judge(LOGOUT_TOKEN_TYPE, &claims), Err(claim));
        }
    }

    #[test]
    fn a_token_whose_claims_were_changed_after_signing_is_refused() {
        let keys = keys();
        let jwks = Jwks::read(&keys.jwks());
        for algorithm in SigningAlgorithm::ALL {
            let signed = token().sign(&keys, algorithm).unwrap();
            let other = LogoutToken { delivery: DeliveryId::generate(), ..token() }.sign(&keys, algorithm).unwrap();
            let (message, _) = signed.rsplit_once('.').unwrap();
            let (_, signature) = other.rsplit_once('.').unwrap();
            assert_eq!(validate(&format!("{message}.{signature}"), &jwks, &expected(algorithm)), Err("signature"));
        }
    }
}
