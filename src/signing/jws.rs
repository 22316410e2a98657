//! JSON Web Signature, compact serialization (RFC 7515 3.1).

use serde::Serialize;

use super::jwk::base64url;
use super::{CryptographyFailed, SigningAlgorithm, SigningKey};

/// The protected header: these three members, so that nothing in a token points a receiver at another key.
#[derive(Serialize)]
struct Header<'a> {
    typ: &'a str,
    alg: SigningAlgorithm,
    kid: &'a str,
}

impl SigningKey {
    /// Signs `claims` as a JWT (RFC 7519 7.1) whose header holds `typ`, this key's `alg` and its `kid`.
    ///
    /// Runs to its end on the calling thread: tens of microseconds with ES256 and EdDSA; with RS256 0.3 to 1 ms at 2048
    /// bits, growing with the cube of the key's length.
    ///
    /// # Errors
    /// Where `claims` are not to be had as JSON, or the cryptography library cannot sign (out of memory).
    pub fn sign_jwt<C: Serialize>(&self, typ: &str, claims: &C) -> Result<String, CryptographyFailed> {
        let header = Header { typ, alg: self.algorithm(), kid: self.kid() };
        let header = serde_json::to_vec(&header).map_err(|_| CryptographyFailed)?;
        let claims = serde_json::to_vec(claims).map_err(|_| CryptographyFailed)?;
        let mut token = format!("{}.{}", base64url(&header), base64url(&claims));
        let signature = self.sign(token.as_bytes())?;
        token.push('.');
        token.push_str(&base64url(&signature));
        Ok(token)
    }
}
