//! DKIM signatures (RFC 6376): by RSA or, with receivers that know RFC 8463, by Ed25519.

mod relaxed;

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::address::host_name;
use super::message::Message;
use super::message::header_text::folded;
use crate::signing::{CryptographyFailed, SigningAlgorithm, SigningKey};

/// The headers that a signature covers where a message has them: all that a reader or a mail client goes by (RFC 6376
/// 5.4.1), and the two of a one-click unsubscribe link, as RFC 8058 4 demands.
const SIGNED: [&str; 11] = [
    "from",
    "reply-to",
    "to",
    "subject",
    "date",
    "message-id",
    "auto-submitted",
    "list-unsubscribe",
    "list-unsubscribe-post",
    "mime-version",
    "content-type",
];
const NAME: &str = "DKIM-Signature";

/// Signs messages for a domain.
///
/// Only where the relay does not: one signature by the domain of `From` is enough (RFC 7489 3.1). The same message gets the
/// same signature in every attempt, so it carries no time.
///
/// ```
/// use postrider::mail::DkimSigner;
/// use postrider::signing::{SigningAlgorithm, SigningKey};
///
/// let key = SigningKey::generate(SigningAlgorithm::EdDsa)?;
/// let signer = DkimSigner::new("example.com", "postrider2026", key)?;
/// assert_eq!(signer.record_name(), "postrider2026._domainkey.example.com");
/// assert!(signer.record()?.starts_with("v=DKIM1; k=ed25519; p="));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct DkimSigner {
    domain: String,
    selector: String,
    key: SigningKey,
}

/// What no DKIM signature can be made with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DkimError {
    /// The domain is no host name.
    #[error("the domain is no host name")]
    Domain,
    /// The selector is not of labels as a host name is (RFC 6376 3.1).
    #[error("the selector is not of labels as a host name is")]
    Selector,
    /// The key is neither RSA nor Ed25519 (RFC 6376 3.3, RFC 8463 3).
    #[error("the key is neither RSA nor Ed25519")]
    Algorithm,
}

impl DkimSigner {
    /// Signs for `domain` with the key whose public part stands in the DNS under `selector`.
    ///
    /// # Errors
    /// Where one of them cannot be used.
    pub fn new(domain: &str, selector: &str, key: SigningKey) -> Result<Self, DkimError> {
        if key.algorithm() == SigningAlgorithm::Es256 {
            return Err(DkimError::Algorithm);
        }
        let domain = host_name(domain).ok_or(DkimError::Domain)?;
        let selector = host_name(selector).ok_or(DkimError::Selector)?;
        Ok(Self { domain, selector, key })
    }

    /// The name of the TXT record that verifiers look up (RFC 6376 3.6.2.1).
    pub fn record_name(&self) -> String {
        format!("{}._domainkey.{}", self.selector, self.domain)
    }

    /// What must stand in it (RFC 6376 3.6.1, RFC 8463 4). A record of over 255 octets is written as several strings.
    ///
    /// # Errors
    /// Where the cryptography library cannot encode the public key.
    pub fn record(&self) -> Result<String, CryptographyFailed> {
        Ok(format!("v=DKIM1; k={}; p={}", self.key_type(), STANDARD.encode(self.key.public_key_bytes()?)))
    }

    /// Adds a signature before the message's headers.
    ///
    /// # Errors
    /// Where the cryptography library cannot sign.
    pub fn sign(&self, message: Message) -> Result<Message, CryptographyFailed> {
        let (fields, body) = relaxed::parts(message.bytes());
        let signed =
            SIGNED.iter().filter_map(|name| fields.iter().find(|field| field.is(name)).map(|field| (*name, field)));
        // Named once more than it stands there, so that a second `From` breaks the signature (RFC 6376 8.15).
        let mut names = vec!["from"];
        let mut input = Vec::new();
        for (name, field) in signed {
            names.push(name);
            input.extend(field.canonical());
        }
        // In canonical form already: single spaces, wherever it is folded.
        let unsigned = format!(
            "v=1; a={}-sha256; c=relaxed/relaxed; d={}; s={}; h={}; bh={}; b=",
            self.key_type(),
            self.domain,
            self.selector,
            names.join(": "),
            STANDARD.encode(digest(&SHA256, &relaxed::body(body))),
        );
        input.extend(format!("{}:{unsigned}", NAME.to_ascii_lowercase()).into_bytes());
        let signature = STANDARD.encode(self.signature(&input)?);
        let value = folded(&format!("{unsigned}{}", spaced(&signature)), NAME.len() + ": ".len());
        Ok(message.with_first_header(NAME, &value))
    }

    fn key_type(&self) -> &'static str {
        if self.key.algorithm() == SigningAlgorithm::Rs256 { "rsa" } else { "ed25519" }
    }

    /// Ed25519 signs the hash, not the text that it is of (RFC 8463 3).
    fn signature(&self, input: &[u8]) -> Result<Vec<u8>, CryptographyFailed> {
        match self.key.algorithm() {
            SigningAlgorithm::EdDsa => self.key.sign(digest(&SHA256, input).as_ref()),
            _ => self.key.sign(input),
        }
    }
}

/// Base64 in words that fit a line: verifiers ignore white space in it (RFC 6376 3.5).
fn spaced(base64: &str) -> String {
    let mut words = String::with_capacity(base64.len() + base64.len() / 60);
    for (index, character) in base64.chars().enumerate() {
        if index > 0 && index % 64 == 0 {
            words.push(' ');
        }
        words.push(character);
    }
    words
}
