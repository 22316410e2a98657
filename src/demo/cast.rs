//! The receivers: what each does, where it is registered, and what must come of its deliveries.

use std::time::Duration;

use postrider_actors::{Reason, ReplyCode, Status};

use super::pace::Pace;
use super::receiver::Behaviour;
use crate::signing::SigningAlgorithm;

/// A receiver and its one client.
#[derive(Debug, Clone)]
pub(super) struct Role {
    pub(super) name: &'static str,
    /// In the table, at most 24 characters.
    pub(super) does: String,
    pub(super) place: Place,
    pub(super) behaviour: Behaviour,
    pub(super) algorithm: SigningAlgorithm,
    pub(super) visits: Visits,
    pub(super) expected: Expectation,
}

/// Where its logout URI leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// A receiver on 127.0.0.1, with a certificate for that address.
    Loopback,
    /// The same, but its certificate is for another name.
    UnderAnotherName,
    /// A receiver on [`INSIDE`], which the demo's address policy does not admit.
    Inside,
    /// [`PRIVATE`], where nobody of the demo listens.
    Private,
}

impl Place {
    /// Whether `register_client` takes such a URI; where not, the client is written as rows were before that check.
    pub(super) const fn is_admitted(self) -> bool {
        matches!(self, Self::Loopback | Self::UnderAnotherName)
    }
}

/// On loopback like the good receivers, but not the one address that is admitted.
pub(super) const INSIDE: &str = "127.77.0.5";
/// An address of RFC 1918.
pub(super) const PRIVATE: &str = "10.77.0.5";

/// Which of the ended sessions have tokens for it, counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Visits {
    /// The session numbered `first` and each `every`th after it.
    Every {
        /// The step.
        every: usize,
        /// The first.
        first: usize,
    },
    /// Only the session that the demo opens with.
    Opening,
}

impl Visits {
    pub(super) const fn includes(self, session: usize) -> bool {
        match self {
            Self::Every { every, first } => session % every == first,
            Self::Opening => false,
        }
    }
}

/// What must come of each of its deliveries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Expectation {
    pub(super) status: Status,
    /// Of the last attempt, where it did not succeed.
    pub(super) reason: Option<Reason>,
    pub(super) attempts: Attempts,
    pub(super) met: Met,
    /// The least time from one attempt to the next.
    pub(super) apart: Duration,
}

/// Between the clock by which a delivery is due and the receiver's, and between a claim and the token's arrival.
const CLOCKS_APART: Duration = Duration::from_millis(20);
const FROM_CLAIM_TO_RECEIPT: Duration = Duration::from_secs(1);

/// How many attempts each delivery takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Attempts {
    Exactly(u32),
    AtLeast(u32),
}

impl Attempts {
    pub(super) const fn include(self, attempts: u32) -> bool {
        match self {
            Self::Exactly(number) => attempts == number,
            Self::AtLeast(least) => attempts >= least,
        }
    }
}

/// How far attempts get.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Met {
    /// The receiver reads a good token in each.
    EveryAttempt,
    /// Connections, but no request: TLS is refused.
    NoRequest,
    /// Not even a connection.
    NoConnection,
}

const fn succeeds(attempts: u32) -> Expectation {
    let attempts = Attempts::Exactly(attempts);
    Expectation { status: Status::Succeeded, reason: None, attempts, met: Met::EveryAttempt, apart: Duration::ZERO }
}

const fn fails(reason: Option<Reason>, met: Met) -> Expectation {
    Expectation { status: Status::Failed, reason, attempts: Attempts::Exactly(1), met, apart: Duration::ZERO }
}

fn code(code: u16) -> Option<Reason> {
    ReplyCode::new(code).map(Reason::Code)
}

/// Every receiver. With `misbehaving` the first does not do what is expected of it, so that the check can be seen to
/// fail.
pub(super) fn cast(pace: &Pace, misbehaving: bool) -> Vec<Role> {
    let seconds = |duration: Duration| duration.as_secs_f64();
    let unsent = fails(Some(Reason::RefusedDestination), Met::NoConnection);
    let role = |name, does: String, behaviour, (every, first), expected| Role {
        name,
        does,
        place: Place::Loopback,
        behaviour,
        algorithm: SigningAlgorithm::Es256,
        visits: Visits::Every { every, first },
        expected,
    };
    let answers = Behaviour::Answers;
    let prompt_answer = if misbehaving { 400 } else { 200 };
    let (retry_after, slow) = (pace.retry_after, pace.slow_answer);
    let busy = Behaviour::Busy { times: 2, retry_after };
    let tls = Expectation {
        status: Status::Pending,
        reason: Some(Reason::Tls),
        attempts: Attempts::AtLeast(2),
        met: Met::NoRequest,
        apart: Duration::ZERO,
    };
    let apart = |apart: Duration, expected| Expectation { apart, ..expected };
    let not_before = apart(retry_after - CLOCKS_APART, succeeds(3));
    // A sender that lives would have another try after the send timeout.
    let after_its_lease = apart(pace.lease - FROM_CLAIM_TO_RECEIPT, succeeds(2));
    vec![
        role("prompt", "200".into(), answers(prompt_answer), (1, 0), succeeds(1)),
        Role { algorithm: SigningAlgorithm::Rs256, ..role("terse", "204".into(), answers(204), (2, 0), succeeds(1)) },
        Role {
            algorithm: SigningAlgorithm::EdDsa,
            ..role("slow", format!("200 after {} s", seconds(slow)), Behaviour::AnswersAfter(slow), (6, 1), succeeds(1))
        },
        role("busy", format!("503 twice, Retry-After {}", retry_after.as_secs()), busy, (10, 2), not_before),
        role("moved", "302 to another path".into(), Behaviour::Redirects, (12, 3), fails(code(302), Met::EveryAttempt)),
        role(
            "hanging",
            format!("past {} s once, then 200", seconds(pace.send_timeout)),
            Behaviour::SilentOnce,
            (14, 3),
            succeeds(2),
        ),
        role("dropping", "hangs up once, then 200".into(), Behaviour::HangsUpOnce, (10, 4), succeeds(2)),
        role("refusing", "400".into(), answers(400), (12, 5), fails(code(400), Met::EveryAttempt)),
        Role {
            visits: Visits::Opening,
            ..role("orphaned", "its sender killed; 200".into(), Behaviour::SilentOnce, (1, 0), after_its_lease)
        },
        Role {
            place: Place::UnderAnotherName,
            ..role("impostor", "certificate: other name".into(), answers(200), (15, 6), tls)
        },
        Role {
            place: Place::Private,
            ..role("private", format!("registered at {PRIVATE}"), answers(200), (15, 8), unsent)
        },
        Role { place: Place::Inside, ..role("inside", format!("listens on {INSIDE}"), answers(200), (15, 10), unsent) },
    ]
}
