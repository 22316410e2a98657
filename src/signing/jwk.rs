//! The public half of a key, as a JSON Web Key (RFC 7517) and as the thumbprint that names it (RFC 7638).

use aws_lc_rs::digest;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::SigningAlgorithm;

/// Public members only, base64url without padding: there is no place here for a private one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PublicJwk {
    /// RFC 7518 6.2.1, curve P-256.
    Ec { x: String, y: String },
    /// RFC 7518 6.3.1.
    Rsa { n: String, e: String },
    /// RFC 8037 2, curve Ed25519.
    Okp { x: String },
}

impl PublicJwk {
    /// From an uncompressed point, `04 || x || y` (SEC 1 2.3.3); `None` where it is no such point of P-256.
    pub(super) fn from_p256_point(point: &[u8]) -> Option<Self> {
        let (x, y) = point.strip_prefix(&[4])?.split_at_checked(32)?;
        (y.len() == 32).then(|| Self::Ec { x: base64url(x), y: base64url(y) })
    }

    /// From big-endian numbers without leading zeros.
    pub(super) fn from_rsa_numbers(modulus: &[u8], exponent: &[u8]) -> Self {
        Self::Rsa { n: base64url(modulus), e: base64url(exponent) }
    }

    /// From the 32 bytes of RFC 8032 5.1.5.
    pub(super) fn from_ed25519(public_key: &[u8]) -> Self {
        Self::Okp { x: base64url(public_key) }
    }

    /// The SHA-256 thumbprint, base64url (RFC 7638 3): 43 characters that depend on the public key alone.
    pub(super) fn thumbprint(&self) -> String {
        // Required members in lexicographic order, no white space. base64url needs no escaping.
        let required = match self {
            Self::Ec { x, y } => format!(r#"{{"crv":"P-256","kty":"EC","x":"{x}","y":"{y}"}}"#),
            Self::Rsa { n, e } => format!(r#"{{"e":"{e}","kty":"RSA","n":"{n}"}}"#),
            Self::Okp { x } => format!(r#"{{"crv":"Ed25519","kty":"OKP","x":"{x}"}}"#),
        };
        base64url(digest::digest(&digest::SHA256, required.as_bytes()).as_ref())
    }

    /// The published form: the public members with `kid`, `alg` and `use`.
    pub(super) fn to_json(&self, kid: &str, algorithm: SigningAlgorithm) -> Value {
        let alg = algorithm.as_str();
        match self {
            Self::Ec { x, y } => {
                json!({ "kty": "EC", "crv": "P-256", "x": x, "y": y, "kid": kid, "alg": alg, "use": "sig" })
            }
            Self::Rsa { n, e } => json!({ "kty": "RSA", "n": n, "e": e, "kid": kid, "alg": alg, "use": "sig" }),
            Self::Okp { x } => {
                json!({ "kty": "OKP", "crv": "Ed25519", "x": x, "kid": kid, "alg": alg, "use": "sig" })
            }
        }
    }
}

/// base64url without padding (RFC 7515 2).
pub(super) fn base64url(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thumbprint_is_that_of_rfc_7638_section_3_1() {
        let key = PublicJwk::Rsa {
            n: "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZ\
                CiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZ\
                gnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniI\
                qbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw"
                .to_owned(),
            e: "AQAB".to_owned(),
        };
        assert_eq!(key.thumbprint(), "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs");
    }

    #[test]
    fn a_point_that_is_not_uncompressed_p256_is_no_key() {
        assert_eq!(PublicJwk::from_p256_point(&[4; 65]).map(|key| key.thumbprint().len()), Some(43));
        for wrong in [&[2; 33][..], &[4; 97], &[4; 64], &[4; 1], &[]] {
            assert_eq!(PublicJwk::from_p256_point(wrong), None, "{} bytes", wrong.len());
        }
    }
}
