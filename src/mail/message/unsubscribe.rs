//! The one-click unsubscribe link (RFC 8058).

use url::Url;

use super::ComposeError;

const SCHEME: &str = "https://";

/// Takes a link that stands in `List-Unsubscribe` as it is: one https URI (RFC 8058 3.1) without credentials, of URI characters alone
/// (RFC 3986 2), without the comma, which would part it from a second one (RFC 2369 2).
pub(super) fn checked(uri: &str) -> Result<&str, ComposeError> {
    let is_https = uri.get(..SCHEME.len()).is_some_and(|scheme| scheme.eq_ignore_ascii_case(SCHEME));
    if is_https && uri.bytes().all(is_uri_byte) && has_plain_authority(uri) {
        Ok(uri)
    } else {
        Err(ComposeError::UnsubscribeUri)
    }
}

fn is_uri_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~%:/?#[]@!$&'()*+;=".contains(&byte)
}

/// A host and no user name or password. What a URL parser reads must be what stands there: it takes `https:///a` for
/// the host `a`.
fn has_plain_authority(uri: &str) -> bool {
    let starts_with_host = uri.as_bytes().get(SCHEME.len()).is_some_and(|byte| !b"/?#".contains(byte));
    let parsed = Url::parse(uri);
    starts_with_host && parsed.is_ok_and(|url| url.username().is_empty() && url.password().is_none())
}
