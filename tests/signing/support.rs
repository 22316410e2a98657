//! The keys, the token and the words that the tests share.

use std::path::PathBuf;

use chrono::{DateTime, Utc};
use postrider::signing::{LogoutSubject, LogoutToken, SigningAlgorithm, SigningKey, SigningKeys};
use postrider_actors::DeliveryId;

pub const ISSUER: &str = "https://id.example.com/tenant/a";
pub const CLIENT_ID: &str = "client-7f3a";
pub const SUB: &str = "pairwise-ünïcode-\"sub\"";
pub const SID: &str = "session-5c41";

/// The accepted key of each algorithm.
pub const KEY_FILES: [(SigningAlgorithm, &str); 3] = [
    (SigningAlgorithm::Es256, "p256_pkcs8.pem"),
    (SigningAlgorithm::Rs256, "rsa2048_pkcs8.pem"),
    (SigningAlgorithm::EdDsa, "ed25519_pkcs8.pem"),
];

pub fn key_path(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests", "data", "keys", name].iter().collect()
}

pub fn key_text(name: &str) -> String {
    std::fs::read_to_string(key_path(name)).unwrap()
}

pub fn key(name: &str) -> SigningKey {
    SigningKey::from_pem_file(&key_path(name)).unwrap()
}

/// One key of each algorithm.
pub fn keys() -> SigningKeys {
    SigningKeys::new(KEY_FILES.iter().map(|(_, file)| key(file)).collect()).unwrap()
}

pub fn delivery() -> DeliveryId {
    "0190b5a4-8c7e-7c3a-9d52-3f1e6a7b8c9d".parse().unwrap()
}

pub fn issued_at() -> DateTime<Utc> {
    "2026-03-01T12:00:00.987Z".parse().unwrap()
}

/// What the tests sign unless they say otherwise.
pub fn token() -> LogoutToken<'static> {
    LogoutToken {
        issuer: ISSUER,
        client_id: CLIENT_ID,
        subject: LogoutSubject::new(Some(SUB), Some(SID)).unwrap(),
        delivery: delivery(),
        issued_at: issued_at(),
    }
}
