//! One private key and what may be known of it.

use std::fmt;

use aws_lc_rs::encoding::{AsDer, PublicKeyX509Der};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA256, RsaKeyPair,
    RsaPublicKeyComponents,
};
use serde_json::Value;

use super::SigningAlgorithm;
use super::jwk::PublicJwk;

/// The cryptography library could not generate, sign or encode. It says no more, and out of memory is all it can mean
/// for a key that was loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the cryptography library failed")]
pub struct CryptographyFailed;

/// A private key that signs tokens of one algorithm, checked when it was loaded.
///
/// Its `Debug` shows `kid` and `alg` alone. The private part leaves it only as [`SigningKey::to_pkcs8_pem`].
pub struct SigningKey {
    private: PrivateKey,
    public: PublicJwk,
    kid: String,
}

/// A key pair per algorithm.
pub(super) enum PrivateKey {
    Es256(EcdsaKeyPair),
    Rs256(RsaKeyPair),
    EdDsa(Ed25519KeyPair),
}

impl SigningKey {
    /// A new key from the operating system's randomness: P-256, RSA of 2048 bits (which takes up to a second), or
    /// Ed25519.
    ///
    /// # Errors
    /// Where the cryptography library cannot make one.
    pub fn generate(algorithm: SigningAlgorithm) -> Result<Self, CryptographyFailed> {
        let private = match algorithm {
            SigningAlgorithm::Es256 => EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).map(PrivateKey::Es256),
            SigningAlgorithm::Rs256 => RsaKeyPair::generate(KeySize::Rsa2048).map(PrivateKey::Rs256),
            SigningAlgorithm::EdDsa => Ed25519KeyPair::generate().map(PrivateKey::EdDsa),
        };
        Self::from_private(private.map_err(|_| CryptographyFailed)?)
    }

    pub(super) fn from_private(private: PrivateKey) -> Result<Self, CryptographyFailed> {
        let public = match &private {
            PrivateKey::Es256(pair) => {
                PublicJwk::from_p256_point(pair.public_key().as_ref()).ok_or(CryptographyFailed)?
            }
            PrivateKey::Rs256(pair) => {
                let numbers = RsaPublicKeyComponents::<Vec<u8>>::from(pair.public_key());
                PublicJwk::from_rsa_numbers(&numbers.n, &numbers.e)
            }
            PrivateKey::EdDsa(pair) => PublicJwk::from_ed25519(pair.public_key().as_ref()),
        };
        let kid = public.thumbprint();
        Ok(Self { private, public, kid })
    }

    /// What it signs with.
    pub const fn algorithm(&self) -> SigningAlgorithm {
        match self.private {
            PrivateKey::Es256(_) => SigningAlgorithm::Es256,
            PrivateKey::Rs256(_) => SigningAlgorithm::Rs256,
            PrivateKey::EdDsa(_) => SigningAlgorithm::EdDsa,
        }
    }

    /// Its name in headers and in the published set: the key's SHA-256 thumbprint, base64url (RFC 7638).
    ///
    /// It follows from the public key, so it is the same in every replica and whatever file the key came from.
    pub fn kid(&self) -> &str {
        &self.kid
    }

    /// The public part as a JSON Web Key (RFC 7517): `kty` and its members, `kid`, `alg` and `use` `sig`.
    pub fn jwk(&self) -> Value {
        self.public.to_json(&self.kid, self.algorithm())
    }

    /// The **private** key as unencrypted PKCS#8 in PEM (RFC 7468 10), for a file that its owner alone may read.
    ///
    /// # Errors
    /// Where the cryptography library cannot encode it.
    pub fn to_pkcs8_pem(&self) -> Result<String, CryptographyFailed> {
        let der = match &self.private {
            PrivateKey::Es256(pair) => pair.to_pkcs8v1().map(|der| der.as_ref().to_vec()),
            PrivateKey::Rs256(pair) => pair.as_der().map(|der| der.as_ref().to_vec()),
            // Version 1, without the public key: version 2 is not read by every tool.
            PrivateKey::EdDsa(pair) => pair.to_pkcs8v1().map(|der| der.as_ref().to_vec()),
        };
        let section = pem::Pem::new("PRIVATE KEY", der.map_err(|_| CryptographyFailed)?);
        Ok(pem::encode_config(&section, pem::EncodeConfig::new().set_line_ending(pem::LineEnding::LF)))
    }

    /// The public key as DKIM publishes it: an RSA key as SubjectPublicKeyInfo (RFC 5280 4.1), any other as the octets
    /// that it consists of (RFC 8463 4).
    pub(crate) fn public_key_bytes(&self) -> Result<Vec<u8>, CryptographyFailed> {
        match &self.private {
            PrivateKey::Es256(pair) => Ok(pair.public_key().as_ref().to_vec()),
            PrivateKey::Rs256(pair) => {
                let der: PublicKeyX509Der<'_> = pair.public_key().as_der().map_err(|_| CryptographyFailed)?;
                Ok(der.as_ref().to_vec())
            }
            PrivateKey::EdDsa(pair) => Ok(pair.public_key().as_ref().to_vec()),
        }
    }

    /// The signature of `message` in the form that JWS wants (RFC 7518 3.3 and 3.4, RFC 8037 3.1).
    pub(crate) fn sign(&self, message: &[u8]) -> Result<Vec<u8>, CryptographyFailed> {
        // aws-lc-rs takes a source of randomness for the sake of ring's interface and draws from its own.
        let random = SystemRandom::new();
        let signature = match &self.private {
            PrivateKey::Es256(pair) => pair.sign(&random, message).map(|signature| signature.as_ref().to_vec()),
            PrivateKey::Rs256(pair) => {
                let mut signature = vec![0; pair.public_modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature).map(|()| signature)
            }
            PrivateKey::EdDsa(pair) => pair.try_sign(message).map(|signature| signature.as_ref().to_vec()),
        };
        signature.map_err(|_| CryptographyFailed)
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningKey")
            .field("kid", &self.kid)
            .field("alg", &self.algorithm().as_str())
            .finish_non_exhaustive()
    }
}
