//! One secret, and the keys for each purpose that are derived from it.

use std::fmt;

use aws_lc_rs::aead::{AES_256_GCM_SIV, LessSafeKey, UnboundKey};
use aws_lc_rs::hkdf::{HKDF_SHA256, Prk, Salt};
use aws_lc_rs::hmac;

use crate::signing::CryptographyFailed;

/// The shortest secret.
const MIN_BYTES: usize = 32;
/// The longest: more adds nothing (RFC 2104 3).
const MAX_BYTES: usize = 1024;

/// A secret that link tokens are derived from. Its `Debug` shows nothing of it.
#[derive(Clone)]
pub struct LinkKey(Vec<u8>);

impl LinkKey {
    /// Takes a secret of 32 to 1024 bytes; `None` for any other length.
    pub fn from_bytes(secret: &[u8]) -> Option<Self> {
        (MIN_BYTES..=MAX_BYTES).contains(&secret.len()).then(|| Self(secret.to_vec()))
    }

    /// A new one of 32 bytes from the operating system's randomness.
    ///
    /// # Errors
    /// Where there is none to be had.
    pub fn generate() -> Result<Self, CryptographyFailed> {
        let mut secret = vec![0; MIN_BYTES];
        aws_lc_rs::rand::fill(&mut secret).map_err(|_| CryptographyFailed)?;
        Ok(Self(secret))
    }

    pub(super) fn secret(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for LinkKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LinkKey")
    }
}

/// The keys of one secret, one for each purpose: HKDF-SHA256 without salt (RFC 5869), the purpose as `info`, so that a
/// token for one purpose never serves another.
pub(super) struct Derived {
    pub(super) verification: hmac::Key,
    pub(super) recovery: hmac::Key,
    pub(super) unsubscribe: LessSafeKey,
}

impl Derived {
    pub(super) fn of(key: &LinkKey) -> Self {
        let secret = Salt::none(HKDF_SHA256).extract(key.secret());
        Self {
            verification: mac_key(&secret, "postrider verification link"),
            recovery: mac_key(&secret, "postrider recovery link"),
            unsubscribe: sealing_key(&secret, super::unsubscribe::PURPOSE),
        }
    }
}

#[allow(clippy::expect_used)] // HKDF-SHA256 gives up to 8160 bytes (RFC 5869 2.3); these are 32
fn mac_key(secret: &Prk, purpose: &str) -> hmac::Key {
    let info = [purpose.as_bytes()];
    secret.expand(&info, HKDF_SHA256.hmac_algorithm()).expect("32 bytes are within HKDF's limit").into()
}

#[allow(clippy::expect_used)] // as above
fn sealing_key(secret: &Prk, purpose: &str) -> LessSafeKey {
    let info = [purpose.as_bytes()];
    let key: UnboundKey = secret.expand(&info, &AES_256_GCM_SIV).expect("32 bytes are within HKDF's limit").into();
    LessSafeKey::new(key)
}
