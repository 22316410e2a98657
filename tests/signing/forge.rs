//! Tokens that Postrider would never sign, signed all the same, by jsonwebtoken.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, EncodingKey};
use postrider::signing::SigningAlgorithm;
use serde_json::{Map, Value};

use crate::support::{KEY_FILES, key_text};

/// The compact form without a signature: `header.claims`.
pub fn unsigned(header: &Map<String, Value>, claims: &Value) -> String {
    let encode = |part: Vec<u8>| URL_SAFE_NO_PAD.encode(part);
    format!("{}.{}", encode(serde_json::to_vec(header).unwrap()), encode(serde_json::to_vec(claims).unwrap()))
}

/// Signed with the test key of `algorithm`, whatever the header says.
pub fn signed(header: &Map<String, Value>, claims: &Value, algorithm: SigningAlgorithm) -> String {
    let (_, file) = KEY_FILES.iter().find(|(of, _)| *of == algorithm).unwrap();
    let pem = key_text(file);
    let (key, alg) = match algorithm {
        SigningAlgorithm::Es256 => (EncodingKey::from_ec_pem(pem.as_bytes()), Algorithm::ES256),
        SigningAlgorithm::Rs256 => (EncodingKey::from_rsa_pem(pem.as_bytes()), Algorithm::RS256),
        SigningAlgorithm::EdDsa => (EncodingKey::from_ed_pem(pem.as_bytes()), Algorithm::EdDSA),
    };
    with_signature(header, claims, &key.unwrap(), alg)
}

/// HMAC with a secret that everybody knows.
pub fn signed_with_secret(header: &Map<String, Value>, claims: &Value, secret: &[u8]) -> String {
    with_signature(header, claims, &EncodingKey::from_secret(secret).unwrap(), Algorithm::HS256)
}

fn with_signature(header: &Map<String, Value>, claims: &Value, key: &EncodingKey, alg: Algorithm) -> String {
    let message = unsigned(header, claims);
    let signature = jsonwebtoken::crypto::sign(message.as_bytes(), key, alg).unwrap();
    format!("{message}.{signature}")
}
