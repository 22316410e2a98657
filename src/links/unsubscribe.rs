//! Unsubscribe tokens: an account's id under deterministic authenticated encryption (AES-256-GCM-SIV, RFC 8452), which
//! stays safe under a constant nonce: equal ids give equal tokens, and that is all one learns.

use aws_lc_rs::aead::{Aad, LessSafeKey, Nonce};
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use uuid::Uuid;

use crate::identity::AccountId;

/// What the token is for and from which list it takes its holder: the key's and the token's purpose.
pub(super) const PURPOSE: &str = "postrider unsubscribe announcements";

const ID_BYTES: usize = 16;
const TOKEN_BYTES: usize = ID_BYTES + 16;

fn nonce() -> Nonce {
    Nonce::assume_unique_for_key([0; 12])
}

#[allow(clippy::expect_used)] // sealing fails only for texts of over 64 GiB (RFC 8452 6)
pub(super) fn seal(key: &LessSafeKey, account: AccountId) -> String {
    let mut sealed = account.0.as_bytes().to_vec();
    key.seal_in_place_append_tag(nonce(), Aad::from(PURPOSE), &mut sealed).expect("16 bytes can be sealed");
    BASE64_URL_SAFE_NO_PAD.encode(sealed)
}

/// The decoder takes one spelling alone: no padding, and no bits set beyond the last byte (RFC 4648 3.5).
pub(super) fn open(key: &LessSafeKey, token: &str) -> Option<AccountId> {
    let mut sealed = [0; TOKEN_BYTES];
    let length = BASE64_URL_SAFE_NO_PAD.decode_slice(token, &mut sealed).ok()?;
    if length != TOKEN_BYTES {
        return None;
    }
    let id = key.open_in_place(nonce(), Aad::from(PURPOSE), &mut sealed).ok()?;
    Uuid::from_slice(id).ok().map(AccountId)
}
