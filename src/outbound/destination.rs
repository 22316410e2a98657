//! A URL that may be posted to: https, absolute, without user, fragment or tricks.

use std::fmt;
use std::net::IpAddr;

use hyper::header::HeaderValue;
use hyper::http::uri::PathAndQuery;
use postrider_actors::Reason;
use rustls::pki_types::{DnsName, ServerName};
use url::{Host, Url};

use super::address::AddressPolicy;
use super::spelling::{self, MAX_URL_BYTES};

/// Where to post: a URL in normal form (WHATWG URL, https only). What is stored is this form, and it is what is dialled.
///
/// One trailing dot of the host is gone, so that name server, SNI, certificate and Host header agree. A name that
/// passes may still resolve to a refused address: that is decided at each attempt.
///
/// Its `Debug` shows nothing of the URL, which may carry secrets; [`as_str`](Self::as_str) does.
#[derive(Clone, PartialEq, Eq)]
pub struct Destination {
    normal: String,
    host: Host<String>,
    port: u16,
    target: PathAndQuery,
    server_name: ServerName<'static>,
}

/// Why a URL was refused. Never shows any of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DestinationError {
    /// Another scheme than https.
    #[error("only https is allowed")]
    Scheme,
    /// No scheme.
    #[error("not an absolute URL")]
    NotAbsolute,
    /// Not the two slashes that a URL with a host has, or not parsable.
    #[error("not a well-formed URL")]
    BadSyntax,
    /// A user name or password, even an empty one.
    #[error("a user or password is not allowed in the URL")]
    Userinfo,
    /// Not a decimal number from 1 to 65535.
    #[error("the port is not a number from 1 to 65535")]
    Port,
    /// Neither a DNS name, nor an IPv4 address in its usual spelling, nor an IPv6 address in brackets.
    #[error("the host is not valid")]
    BadHost,
    /// An address that is not globally reachable, or a name that always means one.
    #[error("the destination is not globally reachable")]
    RefusedAddress,
    /// A fragment, even an empty one.
    #[error("a fragment is not allowed in the URL")]
    Fragment,
    /// A control character, a raw space, a backslash or an invisible character.
    #[error("the URL has a character that is not allowed")]
    BadChar,
    /// Over 8192 bytes, as given or in normal form.
    #[error("the URL is longer than 8192 bytes")]
    TooLong,
}

impl From<DestinationError> for Reason {
    fn from(_: DestinationError) -> Self {
        Self::RefusedDestination
    }
}

impl Destination {
    /// Takes a URL under the strict policy.
    ///
    /// # Errors
    /// The first fault found, as a closed kind.
    pub fn parse(raw: &str) -> Result<Self, DestinationError> {
        Self::parse_with(raw, &AddressPolicy::default())
    }

    /// Takes a URL, judging addresses in it, and `localhost`, by `policy`. Parsing a normal form gives it back.
    ///
    /// # Errors
    /// The first fault found, as a closed kind.
    pub fn parse_with(raw: &str, policy: &AddressPolicy) -> Result<Self, DestinationError> {
        let spelt_host = spelling::check(raw)?;
        let url = Url::parse(raw).map_err(|fault| match fault {
            url::ParseError::InvalidPort => DestinationError::Port,
            _ => DestinationError::BadHost,
        })?;
        let host = match url.host() {
            Some(Host::Domain(name)) => Host::Domain(dns_name(name, policy)?.to_owned()),
            Some(Host::Ipv4(v4)) => {
                judge_literal(IpAddr::V4(v4), policy)?;
                if spelt_host != v4.to_string() {
                    return Err(DestinationError::BadHost);
                }
                Host::Ipv4(v4)
            }
            Some(Host::Ipv6(v6)) => {
                judge_literal(IpAddr::V6(v6), policy)?;
                Host::Ipv6(v6)
            }
            None => return Err(DestinationError::BadHost),
        };
        let port = url.port_or_known_default().ok_or(DestinationError::Port)?;
        let query = url.query().map(|query| format!("?{query}")).unwrap_or_default();
        let target = format!("{}{query}", url.path());
        let normal = format!("https://{}{target}", authority(&host, port));
        if normal.len() > MAX_URL_BYTES {
            return Err(DestinationError::TooLong);
        }
        let target = PathAndQuery::try_from(target).map_err(|_| DestinationError::BadSyntax)?;
        let server_name = server_name(&host).ok_or(DestinationError::BadHost)?;
        Ok(Self { normal, host, port, target, server_name })
    }

    /// The normal form: what to store. It may carry secrets in path and query: not for logs.
    pub fn as_str(&self) -> &str {
        &self.normal
    }

    /// The host: an A-label name in lower case without trailing dot, or an address.
    pub const fn host(&self) -> &Host<String> {
        &self.host
    }

    /// The TCP port, 1 to 65535; 443 where the URL names none.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// The request target in origin form (RFC 9112 3.2.1).
    pub(super) const fn target(&self) -> &PathAndQuery {
        &self.target
    }

    /// The Host header's value (RFC 9110 7.2): no port where it is 443.
    pub(super) fn host_header(&self) -> Option<HeaderValue> {
        HeaderValue::try_from(authority(&self.host, self.port)).ok()
    }

    /// The name for SNI and the certificate: for an address no SNI is sent and the certificate must name the address.
    pub(super) const fn server_name(&self) -> &ServerName<'static> {
        &self.server_name
    }
}

impl fmt::Debug for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Destination(..)")
    }
}

fn authority(host: &Host<String>, port: u16) -> String {
    if port == 443 { host.to_string() } else { format!("{host}:{port}") }
}

fn server_name(host: &Host<String>) -> Option<ServerName<'static>> {
    match host {
        Host::Domain(name) => DnsName::try_from(name.clone()).ok().map(ServerName::DnsName),
        Host::Ipv4(v4) => Some(ServerName::from(IpAddr::V4(*v4))),
        Host::Ipv6(v6) => Some(ServerName::from(IpAddr::V6(*v6))),
    }
}

fn judge_literal(ip: IpAddr, policy: &AddressPolicy) -> Result<(), DestinationError> {
    if policy.admits(ip) { Ok(()) } else { Err(DestinationError::RefusedAddress) }
}

/// Checks a parsed host as a DNS name (RFC 1035 2.3.4; underscores are in use) and takes one trailing dot off.
fn dns_name<'a>(parsed: &'a str, policy: &AddressPolicy) -> Result<&'a str, DestinationError> {
    let name = parsed.strip_suffix('.').unwrap_or(parsed);
    if name.len() > 253 || !name.split('.').all(is_label) {
        return Err(DestinationError::BadHost);
    }
    let is_localhost = name == "localhost" || name.ends_with(".localhost");
    if is_localhost && !policy.admits_loopback() { Err(DestinationError::RefusedAddress) } else { Ok(name) }
}

fn is_label(label: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_');
    (1..=63).contains(&label.len()) && label.bytes().all(allowed) && !label.starts_with('-') && !label.ends_with('-')
}
