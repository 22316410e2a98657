//! Keys from PEM and to PEM files, and what can be wrong with them.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use aws_lc_rs::error::KeyRejected;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P256K1_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING,
    ECDSA_P521_SHA512_FIXED_SIGNING, EcdsaKeyPair, EcdsaSigningAlgorithm, Ed25519KeyPair, RsaKeyPair,
};
use pem::Pem;

use super::SigningKey;
use super::keys::PrivateKey;

/// No key file is longer, in bytes: RSA of 8192 bits takes 6.4 KB.
const MAX_FILE_BYTES: u64 = 64 * 1024;

/// What is wrong with a key, in a closed list: nothing of its content is ever repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyProblem {
    /// The file could not be opened or read.
    #[error("cannot be read: {0}")]
    Unreadable(
        /// What the operating system said.
        io::ErrorKind,
    ),
    /// The file could not be created or written; one that exists is never overwritten.
    #[error("cannot be written: {0}")]
    Unwritable(
        /// What the operating system said.
        io::ErrorKind,
    ),
    /// Over 64 KiB.
    #[error("is over 64 KiB, longer than any key")]
    TooLarge,
    /// No PEM section in it: binary DER, a JWK, something else.
    #[error("is not PEM: expected -----BEGIN PRIVATE KEY-----")]
    NotPem,
    /// A PEM section that is cut off or not base64, or whose content is no key.
    #[error("is damaged: the PEM does not decode to a key")]
    Damaged,
    /// Only the public half.
    #[error("is a public key: the private key is needed")]
    PublicKey,
    /// A certificate.
    #[error("is a certificate: the private key is needed")]
    Certificate,
    /// Encrypted with a pass phrase (PKCS#8 or the older OpenSSL form).
    #[error("is encrypted: decrypt it first, for instance with `openssl pkey`")]
    Encrypted,
    /// A PEM section of some other kind, such as an OpenSSH key.
    #[error("is PEM of another kind: expected PRIVATE KEY (PKCS#8), EC PRIVATE KEY or RSA PRIVATE KEY")]
    OtherSection,
    /// Several keys, or a key with its certificate.
    #[error("holds several keys or certificates: expected one private key and nothing else")]
    SeveralKeys,
    /// An elliptic curve that none of the algorithms uses.
    #[error("is on the curve {0}: expected P-256 or Ed25519")]
    OtherCurve(
        /// The curve's name.
        &'static str,
    ),
    /// RSA of under 2048 bits (RFC 7518 3.3).
    #[error("is an RSA key of less than 2048 bits")]
    RsaTooShort,
    /// RSA of over 8192 bits, which signs too slowly.
    #[error("is an RSA key of more than 8192 bits")]
    RsaTooLong,
    /// A well-formed section whose key is of another kind or is inconsistent: DSA, X25519, Ed448, RSA-PSS.
    #[error("is not a valid P-256, RSA or Ed25519 private key")]
    Unsupported,
}

/// A file that holds no key to sign with.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("signing key {} {problem}", path.display())]
pub struct SigningKeyError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong.
    pub problem: KeyProblem,
}

impl SigningKey {
    /// Reads one unencrypted private key: PKCS#8 (RFC 5958), SEC 1 `EC PRIVATE KEY` (RFC 5915) or PKCS#1
    /// `RSA PRIVATE KEY` (RFC 8017 A.1.2). The algorithm follows from the key. Text around the PEM section is ignored.
    ///
    /// # Errors
    /// Whatever is not exactly one such key of P-256, RSA with 2048 to 8192 bits, or Ed25519.
    pub fn from_pem(pem: &str) -> Result<Self, KeyProblem> {
        let section = only_section(pem)?;
        let private = match section.tag() {
            "PRIVATE KEY" => from_pkcs8(section.contents()),
            "EC PRIVATE KEY" => p256(section.contents()).ok_or_else(|| refused_ec(section.contents())),
            "RSA PRIVATE KEY" => RsaKeyPair::from_der(section.contents()).map(PrivateKey::Rs256).map_err(refused_rsa),
            tag if tag.ends_with("PUBLIC KEY") => Err(KeyProblem::PublicKey),
            tag if tag.ends_with("CERTIFICATE") => Err(KeyProblem::Certificate),
            _ => Err(KeyProblem::OtherSection),
        };
        Self::from_private(private?).map_err(|_| KeyProblem::Unsupported)
    }

    /// Reads a file as [`SigningKey::from_pem`] does. Blocks for the read.
    ///
    /// # Errors
    /// As there, or where the file cannot be read or is over 64 KiB. The error names the path.
    pub fn from_pem_file(path: &Path) -> Result<Self, SigningKeyError> {
        read(path).and_then(|pem| Self::from_pem(&pem)).map_err(at(path))
    }

    /// Writes the **private** key as PKCS#8 to a new file that its owner alone may read and write (mode 0600).
    /// Blocks until it is on disk.
    ///
    /// # Errors
    /// Where the file exists already (it is left as it is) or cannot be written. The error names the path.
    pub fn write_pem_file(&self, path: &Path) -> Result<(), SigningKeyError> {
        let pem = self.to_pkcs8_pem().map_err(|_| KeyProblem::Unsupported).map_err(at(path))?;
        write_private(path, pem.as_bytes()).map_err(unwritable).map_err(at(path))
    }
}

fn at(path: &Path) -> impl Fn(KeyProblem) -> SigningKeyError {
    move |problem| SigningKeyError { path: path.to_owned(), problem }
}

fn unwritable(error: io::Error) -> KeyProblem {
    KeyProblem::Unwritable(error.kind())
}

fn read(path: &Path) -> Result<String, KeyProblem> {
    let unreadable = |error: io::Error| KeyProblem::Unreadable(error.kind());
    let mut content = Vec::new();
    let file = File::open(path).map_err(unreadable)?;
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut content).map_err(unreadable)?;
    if content.len() as u64 > MAX_FILE_BYTES {
        return Err(KeyProblem::TooLarge);
    }
    String::from_utf8(content).map_err(|_| KeyProblem::NotPem)
}

/// Writes a secret to a new file that its owner alone may read and write, and on to the disk. One that exists is left as
/// it is.
pub(crate) fn write_private(path: &Path, secret: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    file.write_all(secret).and_then(|()| file.sync_all()).inspect_err(|_| {
        // Half a key is of no use to anyone; the first error is the one to report.
        let _ = fs::remove_file(path);
    })
}

/// The one section that a key file may hold, besides the `EC PARAMETERS` that `openssl ecparam -genkey` puts first.
fn only_section(pem: &str) -> Result<Pem, KeyProblem> {
    let begun = pem.matches("-----BEGIN ").count();
    if begun == 0 {
        return Err(KeyProblem::NotPem);
    }
    let sections = pem::parse_many(pem).map_err(|_| KeyProblem::Damaged)?;
    if sections.len() != begun {
        return Err(KeyProblem::Damaged);
    }
    let mut keys = sections.into_iter().filter(|section| section.tag() != "EC PARAMETERS");
    let section = keys.next().ok_or(KeyProblem::OtherSection)?;
    if keys.next().is_some() {
        return Err(KeyProblem::SeveralKeys);
    }
    let old_style = section.headers().get("Proc-Type").is_some_and(|value| value.contains("ENCRYPTED"));
    if old_style || section.tag() == "ENCRYPTED PRIVATE KEY" {
        return Err(KeyProblem::Encrypted);
    }
    Ok(section)
}

fn from_pkcs8(der: &[u8]) -> Result<PrivateKey, KeyProblem> {
    if let Some(private) = p256(der) {
        return Ok(private);
    }
    if let Ok(pair) = Ed25519KeyPair::from_pkcs8(der) {
        return Ok(PrivateKey::EdDsa(pair));
    }
    RsaKeyPair::from_pkcs8(der).map(PrivateKey::Rs256).map_err(|error| match refused_rsa(error) {
        KeyProblem::Unsupported => refused_ec(der),
        problem => problem,
    })
}

/// Reads PKCS#8 as well as SEC 1, and checks that the public key belongs to the private one.
fn p256(der: &[u8]) -> Option<PrivateKey> {
    EcdsaKeyPair::from_private_key_der(&ECDSA_P256_SHA256_FIXED_SIGNING, der).map(PrivateKey::Es256).ok()
}

/// Tells another curve from what is no elliptic-curve key.
fn refused_ec(der: &[u8]) -> KeyProblem {
    let others: [(&'static str, &'static EcdsaSigningAlgorithm); 3] = [
        ("P-384", &ECDSA_P384_SHA384_FIXED_SIGNING),
        ("P-521", &ECDSA_P521_SHA512_FIXED_SIGNING),
        ("secp256k1", &ECDSA_P256K1_SHA256_FIXED_SIGNING),
    ];
    let curve = others.into_iter().find(|(_, curve)| EcdsaKeyPair::from_private_key_der(curve, der).is_ok());
    curve.map_or(KeyProblem::Unsupported, |(name, _)| KeyProblem::OtherCurve(name))
}

/// The library names what it refused by one word out of a fixed list.
fn refused_rsa(error: KeyRejected) -> KeyProblem {
    match error.to_string().as_str() {
        "TooSmall" => KeyProblem::RsaTooShort,
        "TooLarge" => KeyProblem::RsaTooLong,
        _ => KeyProblem::Unsupported,
    }
}
