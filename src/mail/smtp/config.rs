//! How relays are reached: the settings, checked before the first message.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use super::names::is_client_name;
use super::relay::{Relay, Security};
use crate::outbound::TlsSetupError;

/// How messages are handed to relays.
#[derive(Debug, Clone)]
pub struct SmtpConfig {
    /// In order of preference; at least one.
    pub relays: Vec<Relay>,
    /// What this client calls itself in EHLO (RFC 5321 4.1.1.1): a fully qualified name, or an address literal.
    pub helo: String,
    /// A PEM file of root certificates trusted beside the platform's.
    pub extra_roots: Option<PathBuf>,
    /// The name server to ask for relays' names; `None`: the machine's own way, with /etc/hosts and its search names.
    pub name_server: Option<SocketAddr>,
    /// Lets `smtp+plain` relays be on other machines, where anyone between can read and change what is sent. Never
    /// with a login.
    pub allow_plain_to_any_host: bool,
    /// For one attempt, from the look-up to the reply to the final dot, over all relays. 9.5 s by default: below the
    /// 10 s that the engine gives an attempt, so that it is this one that says why.
    pub total_timeout: Duration,
    /// For each step of an attempt, all within the total.
    pub stage_timeouts: StageTimeouts,
    /// How long a connection is used.
    pub connections: ConnectionLimits,
}

/// The longest that each step may take up to where the message goes out, which has all that is left of the total, and
/// a quarter of it at least. All are far below what RFC 5321 4.5.3.2 suggests, as an attempt must end before its lease;
/// where the last wait is too short for a relay, a message that it took is sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StageTimeouts {
    /// The look-up and all connects together. 3 s by default.
    pub connect: Duration,
    /// The TLS handshake. 3 s by default.
    pub tls: Duration,
    /// Each reply up to the one to DATA. 4 s by default.
    pub reply: Duration,
}

impl Default for StageTimeouts {
    fn default() -> Self {
        Self { connect: Duration::from_secs(3), tls: Duration::from_secs(3), reply: Duration::from_secs(4) }
    }
}

/// How long a connection is used for one message after the other. At the first limit it is closed with QUIT.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// Messages over one connection. 100 by default.
    pub messages: u32,
    /// Since it was made. 5 min by default.
    pub age: Duration,
    /// Since its last message. 30 s by default. Zero: every message has a connection of its own.
    pub idle: Duration,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self { messages: 100, age: Duration::from_secs(300), idle: Duration::from_secs(30) }
    }
}

const DEFAULT_TOTAL_TIMEOUT: Duration = Duration::from_millis(9500);

impl SmtpConfig {
    /// The defaults, for these relays and this EHLO name.
    pub fn new(relays: Vec<Relay>, helo: impl Into<String>) -> Self {
        Self {
            relays,
            helo: helo.into(),
            extra_roots: None,
            name_server: None,
            allow_plain_to_any_host: false,
            total_timeout: DEFAULT_TOTAL_TIMEOUT,
            stage_timeouts: StageTimeouts::default(),
            connections: ConnectionLimits::default(),
        }
    }

    pub(super) fn check(&self) -> Result<(), SmtpSetupError> {
        if self.relays.is_empty() {
            return Err(SmtpSetupError::NoRelay);
        }
        if !is_client_name(&self.helo) {
            return Err(SmtpSetupError::Helo);
        }
        let StageTimeouts { connect, tls, reply } = self.stage_timeouts;
        if [self.total_timeout, connect, tls, reply].iter().any(Duration::is_zero) {
            return Err(SmtpSetupError::Timeout);
        }
        if self.connections.messages == 0 {
            return Err(SmtpSetupError::Messages);
        }
        self.relays.iter().enumerate().try_for_each(|(index, relay)| self.check_relay(index, relay))
    }

    fn check_relay(&self, index: usize, relay: &Relay) -> Result<(), SmtpSetupError> {
        if relay.security() != Security::Plain {
            return if relay.server_name().is_some() { Ok(()) } else { Err(SmtpSetupError::TlsName { index }) };
        }
        match relay.loopback() {
            Some(_) => Ok(()),
            None if relay.credentials().is_some() => Err(SmtpSetupError::LoginInClear { index }),
            None if self.allow_plain_to_any_host => Ok(()),
            None => Err(SmtpSetupError::PlainToOtherHost { index }),
        }
    }
}

/// The settings cannot be used. Each names the one at fault, and none shows a login.
#[derive(Debug, thiserror::Error)]
pub enum SmtpSetupError {
    /// The list is empty.
    #[error("relays: there is none")]
    NoRelay,
    /// Not a fully qualified name or an address literal.
    #[error("helo: neither a fully qualified name nor an address literal such as [192.0.2.1]")]
    Helo,
    /// Zero.
    #[error("total_timeout and stage_timeouts: none may be zero")]
    Timeout,
    /// Zero.
    #[error("connections.messages: must be at least 1")]
    Messages,
    /// No certificate can bear the name.
    #[error("relays[{index}]: no certificate can bear this name")]
    TlsName {
        /// Which relay, from 0.
        index: usize,
    },
    /// Without TLS to another machine.
    #[error("relays[{index}]: smtp+plain goes to this machine only, unless allow_plain_to_any_host is set")]
    PlainToOtherHost {
        /// Which relay, from 0.
        index: usize,
    },
    /// A login without TLS to another machine, which no setting allows (RFC 4954 4).
    #[error("relays[{index}]: a login over smtp+plain goes to this machine only")]
    LoginInClear {
        /// Which relay, from 0.
        index: usize,
    },
    /// The roots or TLS.
    #[error("extra_roots")]
    Tls(#[from] TlsSetupError),
    /// No name server is configured on this host, or its configuration cannot be read.
    #[error("name_server: cannot set up name resolution")]
    Resolver {
        /// What went wrong.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}
