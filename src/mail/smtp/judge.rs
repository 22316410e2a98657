//! What a session's end means for the delivery: one table for all that relays say and do.

use mail_send::Error;
use postrider_actors::{Outcome, Reason, ReplyCode};

use super::guard::Fault;
use crate::outbound::connect::is_tls;

/// How far an attempt had come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Before MAIL: what the relay says, it says of itself and of us, never of the message.
    Session,
    /// MAIL, RCPT and DATA: of the message, none of which has been sent.
    Envelope,
    /// From the 354 on: the relay may have the message, whatever we heard of it.
    Data,
}

/// Judges a refusal or a failure (RFC 5321 4.2.1, 4.2.4.2; RFC 4954 6 for 530, 534 and 535, which are about the login).
///
/// A 5xx at MAIL or later fails, but for those three. All else may pass by itself: a 4xx, a timeout, a connection, TLS,
/// whatever is not of the protocol, and any refusal before MAIL.
pub const fn judge(stage: Stage, reason: Reason) -> Outcome {
    match (stage, reason) {
        (Stage::Session, _) => Outcome::retry(reason),
        (_, Reason::Code(code)) if is_final(code) => Outcome::failed(reason),
        _ => Outcome::retry(reason),
    }
}

const fn is_final(code: ReplyCode) -> bool {
    matches!(code.get(), 500..=599) && !is_of_the_login(code)
}

const fn is_of_the_login(code: ReplyCode) -> bool {
    matches!(code.get(), 530 | 534 | 535)
}

/// Whether a failure from MAIL on says nothing of the message: the session broke, the relay ended it (RFC 5321 3.8), or
/// it does not know the login any more.
pub(super) const fn is_of_the_session(reason: Reason) -> bool {
    match reason {
        Reason::Code(code) => code.get() == 421 || is_of_the_login(code),
        _ => true,
    }
}

/// Whether it stays until an operator mends it: the login, or the relay's certificate.
pub(super) const fn wants_mending(reason: Reason) -> bool {
    match reason {
        Reason::Code(code) => is_of_the_login(code),
        Reason::Tls => true,
        _ => false,
    }
}

/// A reply that is not the one that was needed: 4xx and 5xx by their code; any other is out of place.
pub(super) fn unexpected(code: u16) -> Reason {
    match code {
        400..=599 => ReplyCode::new(code).map_or(Reason::Protocol, Reason::Code),
        _ => Reason::Protocol,
    }
}

/// Why a step of mail-send's failed. Its errors may hold a peer's text: they are never shown.
pub(super) fn reason_of(error: &Error) -> Reason {
    match error {
        Error::Io(error) => reason_of_io(error),
        Error::Tls(_) => Reason::Tls,
        Error::UnexpectedReply(reply) | Error::AuthenticationFailed(reply) => unexpected(reply.code),
        Error::Timeout => Reason::Timeout,
        _ => Reason::Protocol,
    }
}

/// Why reading or writing failed: the guard's own finding, TLS, or the connection under it.
pub(super) fn reason_of_io(error: &std::io::Error) -> Reason {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<Fault>()) {
        Some(fault) => fault.reason(),
        None if is_tls(error) => Reason::Tls,
        None => Reason::Connection,
    }
}
