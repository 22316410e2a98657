//! Tokens and their digests.

/// SHA-256 of a link's token: what the row in the domain holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TokenDigest(pub [u8; 32]);
