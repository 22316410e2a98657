//! The signature algorithms that a client may have registered.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A JWS `alg` (RFC 7518 3.1, RFC 8037 3.1) that a token can be signed with: asymmetric ones only, never `none`.
///
/// A client that registered no `id_token_signed_response_alg` gets RS256 by OpenID Connect Dynamic Client
/// Registration 1.0, 2. The default here is that of a host which chooses for its clients.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum SigningAlgorithm {
    /// ECDSA on P-256 with SHA-256.
    #[default]
    #[serde(rename = "ES256")]
    Es256,
    /// RSASSA-PKCS1-v1_5 with SHA-256, by a key of 2048 to 8192 bits.
    #[serde(rename = "RS256")]
    Rs256,
    /// EdDSA on Ed25519, under the name that clients register; RFC 9864 has deprecated it for `Ed25519`.
    #[serde(rename = "EdDSA")]
    EdDsa,
}

impl SigningAlgorithm {
    /// Every algorithm, the default first.
    pub const ALL: [Self; 3] = [Self::Es256, Self::Rs256, Self::EdDsa];

    /// The `alg` value, as in a token's header and in client metadata.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Es256 => "ES256",
            Self::Rs256 => "RS256",
            Self::EdDsa => "EdDSA",
        }
    }
}

impl fmt::Display for SigningAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// An `alg` that tokens are not signed with here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no signing algorithm: expected ES256, RS256 or EdDSA")]
pub struct UnknownAlgorithm(
    /// The text as given, cut to 40 characters.
    pub String,
);

impl FromStr for SigningAlgorithm {
    type Err = UnknownAlgorithm;

    /// Case matters, as it does in JOSE (RFC 7515 4.1.1).
    fn from_str(text: &str) -> Result<Self, UnknownAlgorithm> {
        Self::ALL
            .into_iter()
            .find(|algorithm| algorithm.as_str() == text)
            .ok_or_else(|| UnknownAlgorithm(text.chars().take(40).collect()))
    }
}
