//! The logout token (OpenID Connect Back-Channel Logout 1.0, errata set 1, section 2.4).

use chrono::{DateTime, TimeDelta, Utc};
use postrider_actors::{DeliveryId, Reason};
use serde::Serialize;

use super::{SigningAlgorithm, SigningKeys};

/// The member of `events` that makes a JWT a logout token; `http`, as the specification writes it.
pub const BACKCHANNEL_LOGOUT_EVENT: &str = "http://schemas.openid.net/event/backchannel-logout";

/// The header's `typ`, without the `application/` prefix (RFC 7515 4.1.9).
pub const LOGOUT_TOKEN_TYPE: &str = "logout+jwt";

/// From `iat` to `exp`: two minutes, the longest that section 4 recommends.
pub const LOGOUT_TOKEN_LIFETIME: TimeDelta = TimeDelta::seconds(120);

/// What ended: a session, or every session of a subject at the client. At least one of `sub` and `sid` is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogoutSubject<'a> {
    sub: Option<&'a str>,
    sid: Option<&'a str>,
}

/// Neither `sub` nor `sid`, or an empty one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSubject {
    /// A logout token must say who or what was logged out (section 2.4).
    #[error("a logout token needs sub or sid, and neither was given")]
    Neither,
    /// An empty `sub` or `sid` names nobody.
    #[error("the {0} of a logout token is empty")]
    Empty(
        /// `sub` or `sid`.
        &'static str,
    ),
}

impl<'a> LogoutSubject<'a> {
    /// `sub` as this client saw it in its ID Tokens (pairwise where that is used), `sid` of the session that ended.
    ///
    /// Without `sid` the message means *every* session of `sub` at the client, and a client that registered
    /// `backchannel_logout_session_required` must be given one: both are for the caller to know.
    ///
    /// # Errors
    /// Where both are absent or one is empty.
    pub fn new(sub: Option<&'a str>, sid: Option<&'a str>) -> Result<Self, InvalidSubject> {
        match (sub, sid) {
            (None, None) => Err(InvalidSubject::Neither),
            (Some(""), _) => Err(InvalidSubject::Empty("sub")),
            (_, Some("")) => Err(InvalidSubject::Empty("sid")),
            _ => Ok(Self { sub, sid }),
        }
    }
}

/// What one attempt says to one client. Only `iat`, `exp` and the signature differ between attempts of a delivery.
#[derive(Debug, Clone, Copy)]
pub struct LogoutToken<'a> {
    /// `iss`: byte for byte the issuer of the client's ID Tokens.
    pub issuer: &'a str,
    /// `aud`: this client and no other.
    pub client_id: &'a str,
    /// `sub` and `sid`.
    pub subject: LogoutSubject<'a>,
    /// `jti`: the same in every attempt, so that a client can tell a repeat.
    pub delivery: DeliveryId,
    /// `iat`: when this attempt is made; `exp` follows [`LOGOUT_TOKEN_LIFETIME`] later. Fractions of a second are cut.
    pub issued_at: DateTime<Utc>,
}

/// The claims and no others: no `nonce`, which section 2.4 forbids, and nothing about the person.
#[derive(Serialize)]
struct Claims<'a> {
    iss: &'a str,
    aud: &'a str,
    iat: i64,
    exp: i64,
    jti: String,
    events: Events,
    #[serde(skip_serializing_if = "Option::is_none")]
    sub: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sid: Option<&'a str>,
}

#[derive(Serialize)]
struct Events {
    #[serde(rename = "http://schemas.openid.net/event/backchannel-logout")]
    backchannel_logout: EmptyObject,
}

/// Written `{}`.
#[derive(Serialize)]
struct EmptyObject {}

impl LogoutToken<'_> {
    /// The token, signed by the first of `keys` that is of `algorithm`: the one that the client registered.
    ///
    /// It runs to its end on the calling thread, also inside an asynchronous attempt: tens of microseconds with ES256
    /// and EdDSA, 0.3 to 1 ms with RS256 at 2048 bits. That is little beside the round trip that follows, so it is not
    /// handed to a blocking thread; an RSA key of 4096 bits and more would make it worth that.
    ///
    /// # Errors
    /// [`Reason::SigningKey`] where no key is of `algorithm`: another algorithm is never put in its place.
    pub fn sign(&self, keys: &SigningKeys, algorithm: SigningAlgorithm) -> Result<String, Reason> {
        let key = keys.signer(algorithm).ok_or(Reason::SigningKey)?;
        key.sign_jwt(LOGOUT_TOKEN_TYPE, &self.claims()).map_err(|_| Reason::SigningKey)
    }

    fn claims(&self) -> Claims<'_> {
        let iat = self.issued_at.timestamp();
        Claims {
            iss: self.issuer,
            aud: self.client_id,
            iat,
            exp: iat + LOGOUT_TOKEN_LIFETIME.num_seconds(),
            jti: self.delivery.to_string(),
            events: Events { backchannel_logout: EmptyObject {} },
            sub: self.subject.sub,
            sid: self.subject.sid,
        }
    }
}
