//! What an attempt came to, in closed types: nothing that a peer says can be stored.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A three-digit reply code of HTTP (RFC 9110 15) or SMTP (RFC 5321 4.2), 100 to 999.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ReplyCode(u16);

impl ReplyCode {
    /// Takes a number that a peer sent; `None` where it has not three digits.
    pub const fn new(code: u16) -> Option<Self> {
        if code >= 100 && code <= 999 { Some(Self(code)) } else { None }
    }

    /// The number.
    pub const fn get(self) -> u16 {
        self.0
    }
}

/// Why an attempt did not succeed: a reply code or one kind out of this list, never text from a peer.
///
/// Its `Display` is what is stored as `last_error` and what operators read; [`FromStr`] reads it back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The peer answered with this code.
    Code(ReplyCode),
    /// The name could not be resolved: SERVFAIL, timeout, NXDOMAIN or no address.
    Dns,
    /// No connection, or one that broke before an answer: refused, reset, unreachable, closed.
    Connection,
    /// The time of the attempt ran out.
    Timeout,
    /// The TLS handshake or the certificate failed.
    Tls,
    /// The answer was not of the protocol, or its head was over the limit.
    Protocol,
    /// The destination may not be contacted: scheme, spelling or address.
    RefusedDestination,
    /// No signing key is configured for what the receiver registered.
    SigningKey,
    /// None of the configured link keys derives the token whose digest the row in the domain holds.
    LinkKey,
    /// The address is one that no mail system takes.
    InvalidAddress,
    /// The message cannot be built: a line, header or link that no mail system takes.
    InvalidMessage,
    /// The recipient's local part is not ASCII, and the relay does not offer SMTPUTF8 (RFC 6531 3.2).
    Smtputf8,
    /// What a send reads of the host's tables could not be read.
    Database,
    /// The payload is of a form that this release does not know; a newer replica will.
    UnreadablePayload,
    /// Past its channel's MAX_AGE: failed unsent.
    Expired,
    /// It waited behind a failed delivery of its ordering key, which cleanup abandoned.
    Abandoned,
    /// The transport panicked.
    Panicked,
}

impl Reason {
    const KINDS: [(Self, &'static str); 16] = [
        (Self::Dns, "dns"),
        (Self::Connection, "connection"),
        (Self::Timeout, "timeout"),
        (Self::Tls, "tls"),
        (Self::Protocol, "protocol"),
        (Self::RefusedDestination, "refused_destination"),
        (Self::SigningKey, "signing_key"),
        (Self::LinkKey, "link_key"),
        (Self::InvalidAddress, "invalid_address"),
        (Self::InvalidMessage, "invalid_message"),
        (Self::Smtputf8, "smtputf8"),
        (Self::Database, "database"),
        (Self::UnreadablePayload, "unreadable_payload"),
        (Self::Expired, "expired"),
        (Self::Abandoned, "abandoned"),
        (Self::Panicked, "panicked"),
    ];
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Self::Code(code) = self {
            return write!(f, "{}", code.get());
        }
        let kind = Self::KINDS.iter().find(|(reason, _)| reason == self);
        f.write_str(kind.map_or("unknown", |(_, name)| name))
    }
}

/// A stored error that is neither a reply code nor a known kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("neither a reply code nor a known kind of error")]
pub struct UnknownReason;

impl FromStr for Reason {
    type Err = UnknownReason;

    fn from_str(text: &str) -> Result<Self, UnknownReason> {
        if let Some((reason, _)) = Self::KINDS.iter().find(|(_, name)| *name == text) {
            return Ok(*reason);
        }
        let code = text.parse().ok().and_then(ReplyCode::new).ok_or(UnknownReason)?;
        Ok(Self::Code(code))
    }
}

/// What the transport saw of one attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The receiver has it.
    Succeeded,
    /// Worth another attempt, no sooner than `not_before` from now (a receiver's Retry-After) and after the backoff.
    Retry {
        /// Why.
        reason: Reason,
        /// The least wait that the receiver asked for; it can only lengthen the backoff.
        not_before: Option<Duration>,
    },
    /// Not an attempt at all: pending again after `wait`, the attempt given back. MAX_AGE still bounds it.
    Deferred {
        /// Why.
        reason: Reason,
        /// From now.
        wait: Duration,
    },
    /// No attempt can succeed.
    Failed {
        /// Why.
        reason: Reason,
    },
}

impl Outcome {
    /// A retry with the backoff alone.
    pub const fn retry(reason: Reason) -> Self {
        Self::Retry { reason, not_before: None }
    }

    /// A final failure.
    pub const fn failed(reason: Reason) -> Self {
        Self::Failed { reason }
    }
}

/// An outcome and, where there is one, the effect that commits with it.
#[derive(Debug, Clone, PartialEq)]
pub struct Attempted<E> {
    /// What the attempt came to.
    pub outcome: Outcome,
    /// Commits with the transition or not at all; may run more than once, so it is idempotent.
    pub effect: Option<E>,
}

impl<E> From<Outcome> for Attempted<E> {
    fn from(outcome: Outcome) -> Self {
        Self { outcome, effect: None }
    }
}

/// What the queue is asked to write for one ended attempt: the outcome with its wait decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// `succeeded`.
    Succeeded,
    /// `pending` after `wait` from the database's now, or `failed` where that is later than MAX_AGE allows.
    Retry {
        /// Why.
        reason: Reason,
        /// Backoff and Retry-After, merged.
        wait: Duration,
    },
    /// `pending` after `wait`, or at MAX_AGE if that is sooner; the attempt is given back.
    Defer {
        /// Why.
        reason: Reason,
        /// From the database's now.
        wait: Duration,
    },
    /// `failed`.
    Failed {
        /// Why.
        reason: Reason,
    },
}

/// The status of a delivery's row. Leased is `Pending` with a claim token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Status {
    /// Waiting or being attempted.
    Pending,
    /// The receiver has it.
    Succeeded,
    /// No attempt can succeed, or none is left; an operator may retry it.
    Failed,
    /// An operator called it off.
    Cancelled,
}

impl Status {
    /// Every status, in the order of a delivery's life.
    pub const ALL: [Self; 4] = [Self::Pending, Self::Succeeded, Self::Failed, Self::Cancelled];

    /// The word in the row, the CLI and the page.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A word that is no status.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no status: expected pending, succeeded, failed or cancelled")]
pub struct UnknownStatus(pub String);

impl FromStr for Status {
    type Err = UnknownStatus;

    fn from_str(text: &str) -> Result<Self, UnknownStatus> {
        Self::ALL
            .into_iter()
            .find(|status| status.as_str() == text)
            .ok_or_else(|| UnknownStatus(text.chars().take(40).collect()))
    }
}

/// What became of one recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "LeaseLost: another claim or an operator owns this delivery now"]
pub enum Settled {
    /// Written; the row now has this status.
    Recorded(Status),
    /// The token no longer held the row: nothing was written.
    LeaseLost,
    /// The effect failed, so nothing was written: another attempt follows once the lease has ended.
    EffectFailed,
    /// The store failed before it came to this one: nothing was written, and it may be recorded again.
    Unrecorded,
}
