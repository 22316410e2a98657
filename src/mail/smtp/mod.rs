//! Handing messages to relays by SMTP (RFC 5321), and judging what relays answer.
//!
//! The way of one attempt: `wire` (a last look at the message) -> `standing` (which relay first) -> `pool` (a
//! connection that was kept) or `connection` (look-up, connect, TLS, EHLO, AUTH, through mail-send) -> `transaction`
//! (MAIL, RCPT, DATA) -> `judge`. Between mail-send and the relay stands `guard`, which lets nothing but whole,
//! bounded, well-formed replies through.
//!
//! What is promised:
//! - One attempt sends the message at most once. Up to the answer to DATA a relay that cannot be used, or that ends or
//!   breaks off the session, is passed over for the next. From the 354 on nothing is tried again: what became of the
//!   message is then the queue's to find out by another attempt, with the same bytes and Message-ID (a relay that takes
//!   its time over the final dot may so get it twice).
//! - TLS is required wherever it is asked for: no fallback, no login and no message in clear.
//! - A connection carries one transaction at a time, and no other after a timeout, a broken protocol or an outcome that
//!   is not known. One that was kept and is gone is replaced within the attempt, as long as nothing was sent.
//! - Of what a relay says, the code alone is kept; no address, login or text is ever logged, stored or shown.
//!
//! What is not: an idle connection past its limits is closed at the next send and not by itself.

mod config;
mod connection;
#[cfg(fuzzing)]
pub mod fuzzing;
mod guard;
mod judge;
mod names;
mod pool;
mod relay;
mod reply;
mod resolver;
mod send;
mod standing;
mod transaction;
mod wire;

pub use self::config::{ConnectionLimits, SmtpConfig, SmtpSetupError, StageTimeouts};
pub use self::judge::{Stage, judge};
pub use self::relay::{MAX_CREDENTIAL_BYTES, Relay, RelayError, Security};
pub use self::reply::{MAX_REPLY_BYTES, MAX_REPLY_LINES};
pub use self::send::Smtp;
