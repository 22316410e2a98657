//! Tokens and their digests.

use std::fmt;

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;

/// The token of a link, as text: 32 bytes in base64url without padding (RFC 4648 5), 43 characters. Whoever holds it is
/// let in, so it goes into the link and nowhere else; its `Debug` shows nothing of it.
#[derive(Clone, PartialEq, Eq)]
pub struct LinkToken(String);

impl LinkToken {
    pub(super) fn of_bytes(bytes: &[u8]) -> Self {
        Self(BASE64_URL_SAFE_NO_PAD.encode(bytes))
    }

    /// Its text, as it stands in the link.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What the row holds.
    pub fn digest(&self) -> TokenDigest {
        TokenDigest::of_text(&self.0)
    }
}

impl fmt::Debug for LinkToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LinkToken")
    }
}

/// SHA-256 of a link's token: what the row in the domain holds. Of the token's text, not of the bytes that it stands
/// for, so that no second spelling of a token has the same digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TokenDigest(pub [u8; 32]);

impl TokenDigest {
    /// Of a token as somebody brought it back, whatever it is.
    pub fn of_text(token: &str) -> Self {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(digest(&SHA256, token.as_bytes()).as_ref());
        Self(bytes)
    }

    /// As it stands in a row; `None` where that is not 32 bytes.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }
}
