//! A relay's address as the operator writes it.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use mail_send::Credentials;
use percent_encoding::percent_decode_str;
use rustls::pki_types::ServerName;
use url::{Host, Url};

use super::names::is_host_name;

/// User name and password together, so that AUTH PLAIN fits in one command line of 512 octets (RFC 5321 4.5.3.1.4,
/// RFC 4954 4).
pub const MAX_CREDENTIAL_BYTES: usize = 360;

/// How a connection to a relay is protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Security {
    /// TLS from the first byte (RFC 8314 3.3): `smtps`.
    Implicit,
    /// STARTTLS (RFC 3207), without which nothing is sent: `smtp`.
    StartTls,
    /// None: `smtp+plain`.
    Plain,
}

impl Security {
    const ALL: [(Self, &'static str, u16); 3] =
        [(Self::Implicit, "smtps", 465), (Self::StartTls, "smtp", 587), (Self::Plain, "smtp+plain", 25)];

    const fn scheme(self) -> &'static str {
        match self {
            Self::Implicit => Self::ALL[0].1,
            Self::StartTls => Self::ALL[1].1,
            Self::Plain => Self::ALL[2].1,
        }
    }
}

/// A text that names no relay. Never shows any of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RelayError {
    /// Not a URL, or with white space or a control character in it.
    #[error("not a URL")]
    Syntax,
    /// Another scheme.
    #[error("the scheme is not one of smtps, smtp and smtp+plain")]
    Scheme,
    /// No host, or one that is neither a name in ASCII nor an address.
    #[error("the host is neither a name in ASCII (A-labels) nor an address")]
    Host,
    /// Port 0, or no number.
    #[error("the port is not one from 1 to 65535")]
    Port,
    /// A user name without password or the other way round, not UTF-8, a control character, or too long.
    #[error("user and password must both be there, without control characters, {MAX_CREDENTIAL_BYTES} bytes at most")]
    Credentials,
    /// A path, a query or a fragment.
    #[error("there is something after the port")]
    Trailing,
}

/// A mail server that takes messages for the world, and how it is reached.
///
/// Neither its `Debug` nor its `Display` shows a user name or a password.
///
/// ```
/// use postrider::mail::smtp::{Relay, RelayError};
///
/// let relay = Relay::parse("smtps://mailer:p%40ss@relay.example")?;
/// assert_eq!(relay.to_string(), "smtps://relay.example:465");
/// assert_eq!(Relay::parse("http://relay.example"), Err(RelayError::Scheme));
/// # Ok::<(), RelayError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Relay {
    security: Security,
    host: Host<String>,
    port: u16,
    credentials: Option<Credentials<String>>,
}

impl Relay {
    /// Takes `smtps://user:password@relay.example:465` (implicit TLS), `smtp://relay.example:587` (STARTTLS, required)
    /// or `smtp+plain://127.0.0.1:25`. User and password are percent-encoded, and may be left out together; so may the
    /// port: 465, 587, 25.
    ///
    /// # Errors
    /// The first fault found, as a closed kind.
    pub fn parse(text: &str) -> Result<Self, RelayError> {
        if text.chars().any(|c| c.is_control() || c.is_whitespace()) {
            return Err(RelayError::Syntax); // which the URL's parser would drop
        }
        let url = Url::parse(text).map_err(|error| match error {
            url::ParseError::InvalidPort => RelayError::Port,
            url::ParseError::EmptyHost | url::ParseError::InvalidDomainCharacter => RelayError::Host,
            _ => RelayError::Syntax,
        })?;
        let (security, _, default_port) =
            Security::ALL.into_iter().find(|(_, scheme, _)| *scheme == url.scheme()).ok_or(RelayError::Scheme)?;
        if !matches!(url.path(), "" | "/") || url.query().is_some() || url.fragment().is_some() {
            return Err(RelayError::Trailing);
        }
        let port = url.port().unwrap_or(default_port);
        if port == 0 {
            return Err(RelayError::Port);
        }
        Ok(Self { security, host: host(&url)?, port, credentials: credentials(&url)? })
    }

    /// How the connection is protected.
    pub const fn security(&self) -> Security {
        self.security
    }

    /// The port.
    pub const fn port(&self) -> u16 {
        self.port
    }

    pub(super) const fn host(&self) -> &Host<String> {
        &self.host
    }

    pub(super) const fn credentials(&self) -> Option<&Credentials<String>> {
        self.credentials.as_ref()
    }

    /// On this machine, whatever a name server says: a loopback address, or `localhost` (RFC 6761 6.3).
    pub(super) fn loopback(&self) -> Option<Vec<IpAddr>> {
        match &self.host {
            Host::Ipv4(v4) if v4.is_loopback() => Some(vec![(*v4).into()]),
            Host::Ipv6(v6) if v6.is_loopback() => Some(vec![(*v6).into()]),
            Host::Domain(name) if name.eq_ignore_ascii_case("localhost") => {
                Some(vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()])
            }
            _ => None,
        }
    }

    /// The name that its certificate must have.
    pub(super) fn server_name(&self) -> Option<ServerName<'static>> {
        match &self.host {
            Host::Domain(name) => ServerName::try_from(name.clone()).ok(),
            Host::Ipv4(v4) => Some(ServerName::IpAddress(IpAddr::V4(*v4).into())),
            Host::Ipv6(v6) => Some(ServerName::IpAddress(IpAddr::V6(*v6).into())),
        }
    }
}

fn host(url: &Url) -> Result<Host<String>, RelayError> {
    match url.host() {
        Some(Host::Ipv6(v6)) => Ok(Host::Ipv6(v6)),
        Some(Host::Ipv4(v4)) => Ok(Host::Ipv4(v4)),
        // The parser knows no IPv4 address under a scheme that is not the web's.
        Some(Host::Domain(name)) => match name.parse::<Ipv4Addr>() {
            Ok(v4) => Ok(Host::Ipv4(v4)),
            Err(_) if is_host_name(name) && !ends_in_number(name) => Ok(Host::Domain(name.to_ascii_lowercase())),
            Err(_) => Err(RelayError::Host),
        },
        None => Err(RelayError::Host),
    }
}

/// An address in a spelling that some resolvers take (`127.1`).
fn ends_in_number(name: &str) -> bool {
    name.rsplit('.').next().is_some_and(|last| last.bytes().all(|byte| byte.is_ascii_digit()))
}

fn credentials(url: &Url) -> Result<Option<Credentials<String>>, RelayError> {
    let plain = |text: &str| {
        let text = percent_decode_str(text).decode_utf8().map_err(|_| RelayError::Credentials)?;
        let usable = !text.is_empty() && !text.chars().any(char::is_control);
        if usable { Ok(text.into_owned()) } else { Err(RelayError::Credentials) }
    };
    let (username, secret) = match (url.username(), url.password()) {
        ("", None) => return Ok(None),
        (user, Some(password)) => (plain(user)?, plain(password)?),
        (_, None) => return Err(RelayError::Credentials),
    };
    let fits = username.len() + secret.len() <= MAX_CREDENTIAL_BYTES;
    if fits { Ok(Some(Credentials::Plain { username, secret })) } else { Err(RelayError::Credentials) }
}

impl FromStr for Relay {
    type Err = RelayError;

    fn from_str(text: &str) -> Result<Self, RelayError> {
        Self::parse(text)
    }
}

impl fmt::Display for Relay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}:{}", self.security.scheme(), self.host, self.port)
    }
}

impl fmt::Debug for Relay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Relay({self})")
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn login(text: &str) -> Option<(String, String)> {
        match Relay::parse(text).unwrap().credentials {
            Some(Credentials::Plain { username, secret }) => Some((username, secret)),
            _ => None,
        }
    }

    #[test]
    fn a_relay_is_read_and_shown_without_its_login() {
        for (text, shown) in [
            ("smtps://relay.example", "smtps://relay.example:465"),
            ("smtp://Relay.Example/", "smtp://relay.example:587"),
            ("smtp+plain://127.0.0.1", "smtp+plain://127.0.0.1:25"),
            ("smtp+plain://[::1]:2525", "smtp+plain://[::1]:2525"),
            ("smtps://user:secret@relay.example:1465", "smtps://relay.example:1465"),
        ] {
            let relay = Relay::parse(text).unwrap();
            assert_eq!(relay.to_string(), shown);
            assert_eq!(format!("{relay:?}"), format!("Relay({shown})"));
        }
    }

    #[test]
    fn a_login_is_percent_decoded() {
        assert_eq!(login("smtps://relay.example"), None);
        let plain = login("smtps://mailer%40example.com:p%40s%3As%2F%C3%A9@relay.example");
        assert_eq!(plain, Some(("mailer@example.com".into(), "p@s:s/é".into())));
    }

    #[test]
    fn what_names_no_relay_is_refused_by_kind() {
        use RelayError::*;
        let long = format!("smtps://u:{}@h.example", "p".repeat(MAX_CREDENTIAL_BYTES));
        for (text, kind) in [
            ("", Syntax),
            ("relay.example:25", Scheme),
            ("smtps://relay.example\r\n", Syntax),
            ("smtps://re\tlay.example", Syntax),
            ("https://relay.example", Scheme),
            ("lmtp://relay.example", Scheme),
            ("smtps://", Host),
            ("smtps:relay.example", Trailing),
            ("smtps://b\u{fc}cher.example", Host),
            ("smtps://a_b.example", Host),
            ("smtps://127.1", Host),
            ("smtps://256.0.0.1", Host),
            ("smtps://relay.example:0", Port),
            ("smtps://relay.example:65536", Port),
            ("smtps://relay.example:x", Port),
            ("smtps://user@relay.example", Credentials),
            ("smtps://:password@relay.example", Credentials),
            ("smtps://user:@relay.example", Credentials),
            ("smtps://us%0Der:password@relay.example", Credentials),
            ("smtps://us%00er:password@relay.example", Credentials),
            ("smtps://us%FFer:password@relay.example", Credentials),
            (&long, Credentials),
            ("smtps://relay.example/path", Trailing),
            ("smtps://relay.example?a=b", Trailing),
            ("smtps://relay.example#a", Trailing),
        ] {
            assert_eq!(Relay::parse(text), Err(kind), "{text:?}");
        }
    }

    #[test]
    fn only_loopback_is_this_machine() {
        for here in ["smtp+plain://127.9.9.9", "smtp+plain://[::1]", "smtp+plain://LOCALHOST"] {
            assert!(Relay::parse(here).unwrap().loopback().is_some(), "{here}");
        }
        for there in ["smtp+plain://10.0.0.1", "smtp+plain://localhost.example", "smtp+plain://[::ffff:127.0.0.1]"] {
            assert!(Relay::parse(there).unwrap().loopback().is_none(), "{there}");
        }
    }
}
