//! What a receiver does about a token that it found good.

use std::fmt;
use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::demo) enum Behaviour {
    /// This status, always.
    Answers(u16),
    /// 200 after a while.
    AnswersAfter(Duration),
    /// 503 with Retry-After so many times for each delivery, then 200.
    Busy { times: u32, retry_after: Duration },
    /// 302 to another path of its own, where nothing must ever come.
    Redirects,
    /// Says nothing to a delivery's first attempt until the sender is gone; then 200.
    SilentOnce,
    /// Closes the connection of a delivery's first attempt once it has read the token; then 200.
    HangsUpOnce,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::demo) enum Answer {
    Status(u16),
    StatusAfter(u16, Duration),
    RetryAfter(u16, Duration),
    Redirect,
    Silence,
    HangUp,
}

impl Behaviour {
    /// `seen`: how often this delivery has come by now, from 1.
    pub(in crate::demo) const fn answer(self, seen: u32) -> Answer {
        match self {
            Self::Answers(status) => Answer::Status(status),
            Self::AnswersAfter(wait) => Answer::StatusAfter(200, wait),
            Self::Busy { times, retry_after } if seen <= times => Answer::RetryAfter(503, retry_after),
            Self::Redirects => Answer::Redirect,
            Self::SilentOnce if seen == 1 => Answer::Silence,
            Self::HangsUpOnce if seen == 1 => Answer::HangUp,
            Self::Busy { .. } | Self::SilentOnce | Self::HangsUpOnce => Answer::Status(200),
        }
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(status) => write!(f, "answers {status}"),
            Self::StatusAfter(status, wait) => write!(f, "answers {status}, but only after {} s", wait.as_secs_f64()),
            Self::RetryAfter(status, wait) => write!(f, "answers {status} with Retry-After: {}", wait.as_secs()),
            Self::Redirect => f.write_str("answers 302"),
            Self::Silence => f.write_str("reads the token and does not answer"),
            Self::HangUp => f.write_str("reads the token and hangs up without an answer"),
        }
    }
}
