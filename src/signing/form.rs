//! The body of a back-channel logout request.

use url::form_urlencoded;

/// The request's `Content-Type` (OpenID Connect Back-Channel Logout 1.0, 2.5).
pub const FORM_CONTENT_TYPE: &str = "application/x-www-form-urlencoded";

/// The request's body: the parameter `logout_token` and nothing else (OpenID Connect Back-Channel Logout 1.0, 2.5).
///
/// A compact JWS needs no escaping; whatever else is given is percent-encoded, so that it cannot add a parameter.
pub fn logout_token_form(token: &str) -> String {
    form_urlencoded::Serializer::new(String::new()).append_pair("logout_token", token).finish()
}
