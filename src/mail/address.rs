//! Addresses as SMTP takes them (RFC 5321 4.1.2, RFC 6531 3.3).

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use idna::AsciiDenyList;
use idna::uts46::{DnsLength, Hyphens, Uts46};
use postrider_actors::Reason;

/// The local part's limit in octets (RFC 5321 4.5.3.1.1).
const MAX_LOCAL_PART: usize = 64;
/// The domain's (RFC 5321 4.5.3.1.2).
const MAX_DOMAIN: usize = 255;
/// That of a path, which is the address between `<` and `>` (RFC 5321 4.5.3.1.3).
const MAX_PATH: usize = 256;

/// An address that a mail system takes: `local-part@domain`, without a name, comments or white space around it.
///
/// Its local part is as given, never encoded and never normalised, and may be a quoted string. Its domain is in lower
/// case and in A-labels (RFC 5890 2.3.2.1), so that it needs no extension, or an address literal (RFC 5321 4.1.3). It holds no
/// control character, no line break of any script and neither `<` nor `>`, wherever quotes stand: it can be written
/// into a command or a header as it is.
///
/// Its `Debug` shows nothing of it.
///
/// ```
/// use postrider::mail::EmailAddress;
///
/// let address = EmailAddress::parse("josé@bücher.example")?;
/// assert_eq!(address.to_string(), "josé@xn--bcher-kva.example");
/// assert!(address.needs_smtputf8());
/// # Ok::<(), postrider::mail::AddressError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct EmailAddress {
    local_part: String,
    domain: String,
}

/// Why a text is no address. Never shows any of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// Not one `@` outside quotes with something on either side.
    #[error("not a local part, an @ and a domain")]
    Syntax,
    /// A control character, a line break of any script, `<` or `>`.
    #[error("holds a control character, a line break, < or >")]
    Character,
    /// The local part is neither a dot-atom nor a quoted string (RFC 5321 4.1.2, RFC 6531 3.3).
    #[error("the local part is neither dot-separated atoms nor a quoted string")]
    LocalPart,
    /// The local part is over 64 octets (RFC 5321 4.5.3.1.1).
    #[error("the local part is over 64 octets")]
    LocalPartTooLong,
    /// The domain is no host name, no internationalised one (RFC 5891) and no address literal (RFC 5321 4.1.3).
    #[error("the domain is neither a host name nor an address literal")]
    Domain,
    /// The domain is over 255 octets, or the address with `<` and `>` over 256 (RFC 5321 4.5.3.1).
    #[error("the address is too long")]
    TooLong,
}

impl From<AddressError> for Reason {
    fn from(_: AddressError) -> Self {
        Self::InvalidAddress
    }
}

impl EmailAddress {
    /// Takes an address.
    ///
    /// # Errors
    /// The first fault found, as a closed kind.
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        if text.chars().any(is_never_allowed) {
            return Err(AddressError::Character);
        }
        let (local_part, domain) = split(text)?;
        let local_part = checked_local_part(local_part)?;
        let domain = checked_domain(domain)?;
        if local_part.len() + "@".len() + domain.len() + "<>".len() > MAX_PATH {
            return Err(AddressError::TooLong);
        }
        Ok(Self { local_part: local_part.into(), domain })
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

fn is_never_allowed(character: char) -> bool {
    super::breaks_a_line(character) || matches!(character, '<' | '>')
}

/// Parts the address at the `@` that is outside quotes.
fn split(text: &str) -> Result<(&str, &str), AddressError> {
    let at = if text.starts_with('"') { end_of_quotes(text) } else { text.find('@') };
    let (local_part, rest) = text.split_at_checked(at.ok_or(AddressError::Syntax)?).ok_or(AddressError::Syntax)?;
    let domain = rest.strip_prefix('@').ok_or(AddressError::Syntax)?;
    if local_part.is_empty() || domain.is_empty() || domain.contains('@') {
        return Err(AddressError::Syntax);
    }
    Ok((local_part, domain))
}

/// Where the quoted string that `text` starts with has ended.
fn end_of_quotes(text: &str) -> Option<usize> {
    let mut escaped = false;
    for (at, character) in text.char_indices().skip(1) {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return Some(at + 1),
            _ => {}
        }
    }
    None
}

fn checked_local_part(text: &str) -> Result<&str, AddressError> {
    let quoted = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    let is_valid = match quoted {
        Some(content) => is_quoted_content(content),
        None => text.split('.').all(|atom| !atom.is_empty() && atom.chars().all(is_atom_text)),
    };
    if !is_valid {
        return Err(AddressError::LocalPart);
    }
    if text.len() > MAX_LOCAL_PART {
        return Err(AddressError::LocalPartTooLong);
    }
    Ok(text)
}

/// `atext` (RFC 5322 3.2.3), widened by whatever is not ASCII (RFC 6531 3.3) and is no white space.
fn is_atom_text(character: char) -> bool {
    character.is_ascii_alphanumeric()
        || "!#$%&'*+-/=?^_`{|}~".contains(character)
        || !character.is_ascii() && !character.is_whitespace()
}

/// At least one `QcontentSMTP` (RFC 5321 4.1.2), widened in the same way. What ends the quotes is always a `"` that no
/// backslash precedes, as [`split`] has seen to.
fn is_quoted_content(content: &str) -> bool {
    let mut escaped = false;
    for character in content.chars() {
        let is_valid = match character {
            ' '..='~' if escaped => true,
            '"' => false,
            _ => character.is_ascii() || !escaped && !character.is_whitespace(),
        };
        if !is_valid {
            return false;
        }
        escaped = !escaped && character == '\\';
    }
    !content.is_empty() && !escaped
}

fn checked_domain(text: &str) -> Result<String, AddressError> {
    // In A-labels each character is one octet or more.
    if text.chars().count() > MAX_DOMAIN {
        return Err(AddressError::TooLong);
    }
    if let Some(literal) = text.strip_prefix('[') {
        return literal.strip_suffix(']').and_then(address_literal).ok_or(AddressError::Domain);
    }
    host_name(text).ok_or(AddressError::Domain)
}

/// A host name in lower case and A-labels (RFC 5321 4.1.2 `Domain`, RFC 5890 2.3.2.1): letters, digits and hyphens, 253
/// octets in labels of 63.
pub(super) fn host_name(text: &str) -> Option<String> {
    let name = Uts46::new().to_ascii(text.as_bytes(), AsciiDenyList::STD3, Hyphens::CheckFirstLast, DnsLength::Verify);
    name.map(String::from).ok()
}

/// An IPv4 or IPv6 address literal (RFC 5321 4.1.3), written anew.
fn address_literal(text: &str) -> Option<String> {
    const TAG: &str = "IPv6:";
    match text.split_at_checked(TAG.len()) {
        Some((tag, address)) if tag.eq_ignore_ascii_case(TAG) => {
            address.parse::<Ipv6Addr>().ok().map(|address| format!("[{TAG}{address}]"))
        }
        _ => text.parse::<Ipv4Addr>().ok().map(|address| format!("[{address}]")),
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
