//! What a URL's raw text must look like before a parser may touch it.
//!
//! A WHATWG parser repairs: it strips tabs, reads `\` as `/`, skips surplus slashes. Each repair is a chance for two
//! readers to disagree about the host, so what would need one is refused here.

use super::destination::DestinationError;

/// The longest URL taken, in bytes: as given, and again in normal form.
pub(super) const MAX_URL_BYTES: usize = 8192;

/// Checks the raw text and returns its host exactly as spelt, without a port.
pub(super) fn check(raw: &str) -> Result<&str, DestinationError> {
    if raw.len() > MAX_URL_BYTES {
        return Err(DestinationError::TooLong);
    }
    if raw.contains(is_forbidden) || raw.starts_with(' ') || raw.ends_with(' ') {
        return Err(DestinationError::BadChar);
    }
    let (scheme, rest) = raw.split_once(':').ok_or(DestinationError::NotAbsolute)?;
    if !is_scheme(scheme) {
        return Err(DestinationError::NotAbsolute);
    }
    if !scheme.eq_ignore_ascii_case("https") {
        return Err(DestinationError::Scheme);
    }
    let rest = rest.strip_prefix("//").ok_or(DestinationError::BadSyntax)?;
    let (authority, tail) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    if authority.is_empty() {
        let only_slashes = tail.trim_start_matches('/').is_empty();
        let fault = if tail.starts_with('/') && !only_slashes {
            DestinationError::BadSyntax
        } else {
            DestinationError::BadHost
        };
        return Err(fault);
    }
    if authority.contains('@') {
        return Err(DestinationError::Userinfo);
    }
    let host = host_of(authority)?;
    if tail.contains('#') {
        return Err(DestinationError::Fragment);
    }
    if tail.contains(' ') {
        return Err(DestinationError::BadChar);
    }
    Ok(host)
}

/// Controls, `\`, and the invisible characters that IDNA drops from a host.
fn is_forbidden(c: char) -> bool {
    c.is_control() || matches!(c, '\\' | '\u{200b}' | '\u{2060}' | '\u{feff}')
}

/// RFC 3986 3.1.
fn is_scheme(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'))
}

/// Splits off a port and checks it: decimal digits, 1 to 65535; leading zeros or nothing at all are legal.
fn host_of(authority: &str) -> Result<&str, DestinationError> {
    let end_of_host = if authority.starts_with('[') {
        authority.find(']').ok_or(DestinationError::BadHost)? + 1
    } else {
        authority.find(':').unwrap_or(authority.len())
    };
    let (host, port) = authority.split_at(end_of_host);
    if host.is_empty() || !(port.is_empty() || port.starts_with(':')) {
        return Err(DestinationError::BadHost);
    }
    let digits = port.trim_start_matches(':');
    if port.len() > digits.len() + 1 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(DestinationError::Port);
    }
    let number = digits.trim_start_matches('0');
    let in_range = digits.is_empty() || number.parse::<u16>().is_ok();
    if in_range { Ok(host) } else { Err(DestinationError::Port) }
}
