//! What a check came to.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use super::history::{Act, Answer, Fate, History, Transition};
use crate::ids::DeliveryId;
use crate::outcome::Status;

/// Why a delivery came again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Cause {
    /// The receiver answered that it should.
    ReceiverAsked,
    /// The receiver's answer never left it, or was not heard.
    AnswerLost,
    /// The worker or its database was harmed before the outcome was written.
    Unrecorded,
    /// An operator asked for it.
    Operator,
}

/// A promise that was broken.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)] // the fields are named for what they hold
pub enum Violation {
    /// It was committed and is nowhere.
    Lost { delivery: DeliveryId },
    /// Its transaction was rolled back.
    RolledBackYetThere { delivery: DeliveryId },
    /// Nobody recorded it.
    Phantom { delivery: DeliveryId },
    /// A row changed as no row may.
    IllegalChange { delivery: DeliveryId, change: Transition },
    /// Another's lease had not ended.
    ClaimedWhileHeld { delivery: DeliveryId, early_by: Duration },
    /// Its time had not come.
    ClaimedBeforeDue { delivery: DeliveryId, early_by: Duration },
    /// One of its key before it had not ended.
    ClaimedOutOfTurn { delivery: DeliveryId },
    /// The lease of one of its key that was cancelled in mid-attempt had not ended.
    ClaimedUnderAnothersLease { delivery: DeliveryId, early_by: Duration },
    /// Its place in the key is before one that was there already.
    InsertedOutOfOrder { delivery: DeliveryId },
    /// A claim must write a fresh token.
    TokenUsedTwice { delivery: DeliveryId },
    /// No operator can have made this change.
    NobodyAskedForIt { delivery: DeliveryId, act: Act },
    /// The operator was told that it was done.
    ActWithoutEffect { delivery: DeliveryId, act: Act },
    /// The worker was told that its outcome was written, and its token did not hold the row.
    RecordedWithoutHolding { delivery: DeliveryId },
    /// Due, or held past its lease, though every fault had ended long before.
    Stuck { delivery: DeliveryId, overdue: Duration },
    /// Nothing of its key before it is left, and it was not made claimable.
    WaitsBehindNothing { delivery: DeliveryId },
    /// No claim has this number.
    SentWithoutClaim { delivery: DeliveryId, attempt: u32 },
    /// One claim, two requests.
    SentTwiceInOneAttempt { delivery: DeliveryId, attempt: u32 },
    /// A repeat must be the same message.
    ContentChanged { delivery: DeliveryId },
    /// No receiver took it.
    SucceededUnsent { delivery: DeliveryId },
    /// No receiver refused it, and it had not expired.
    FailedUnrefused { delivery: DeliveryId },
    /// It was taken, nothing was harmed, and it came again.
    UnexplainedRepeat { delivery: DeliveryId, attempt: u32 },
    /// An earlier attempt came after a later one, and its worker had not stood still.
    UnexplainedLateRepeat { delivery: DeliveryId, attempt: u32 },
    /// Within its key it came first after one that was committed later.
    FirstArrivalOutOfOrder { delivery: DeliveryId, after: DeliveryId },
    /// Too few faults to prove anything.
    Vacuous { fault: String, hits: usize, wanted: usize },
}

impl Violation {
    /// Its name, without what it is about.
    pub fn kind(&self) -> String {
        let shown = format!("{self:?}");
        shown.split([' ', '{']).next().unwrap_or_default().to_owned()
    }
}

/// What was found and counted.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Every broken promise; empty is what is hoped for.
    pub violations: Vec<Violation>,
    /// Deliveries by the fate of their transaction.
    pub committed: usize,
    /// As above.
    pub rolled_back: usize,
    /// As above.
    pub unknown: usize,
    /// How deliveries that exist ended.
    pub ended: BTreeMap<Status, usize>,
    /// Requests that receivers got.
    pub receipts: usize,
    /// Those answered with success.
    pub successes: usize,
    /// Receipts after the first of a delivery, by cause.
    pub repeats: BTreeMap<Cause, usize>,
    /// Repeats of an earlier attempt after a later one, each by a worker that had stood still.
    pub late_repeats: usize,
    /// Operators' acts.
    pub acts: usize,
    /// Faults by kind.
    pub faults: BTreeMap<String, usize>,
}

impl Report {
    pub(super) fn new(history: &History) -> Self {
        let fates = |fate| history.commits.iter().filter(|commit| commit.fate == fate).count();
        let mut faults = BTreeMap::new();
        for fault in &history.faults {
            *faults.entry(fault.kind.clone()).or_default() += 1;
        }
        Self {
            committed: fates(Fate::Committed),
            rolled_back: fates(Fate::RolledBack),
            unknown: fates(Fate::Unknown),
            receipts: history.receipts.len(),
            successes: history.receipts.iter().filter(|receipt| receipt.answer == Answer::Success).count(),
            acts: history.acts.len(),
            faults,
            ..Self::default()
        }
    }

    /// True where no promise was broken.
    pub fn is_clean(&self) -> bool {
        self.violations.is_empty()
    }

    fn count(&self, kinds: &[&str]) -> usize {
        self.violations.iter().filter(|violation| kinds.contains(&violation.kind().as_str())).count()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { committed, rolled_back, unknown, receipts, successes, acts, .. } = self;
        writeln!(f, "deliveries    {committed} committed, {rolled_back} rolled back, {unknown} of unknown fate")?;
        let ended: Vec<String> = self.ended.iter().map(|(status, count)| format!("{count} {status}")).collect();
        writeln!(f, "ended         {}", ended.join(", "))?;
        writeln!(f, "receipts      {receipts}, of which {successes} answered with success; {acts} operators' acts")?;
        let repeats: Vec<String> = self.repeats.iter().map(|(cause, count)| format!("{count} {cause:?}")).collect();
        writeln!(
            f,
            "repeats       {}; {} late, each by a worker that had stood still",
            repeats.join(", "),
            self.late_repeats
        )?;
        let faults: Vec<String> = self.faults.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
        writeln!(f, "faults        {}", faults.join(", "))?;
        let lost = self.count(&["Lost", "Stuck", "WaitsBehindNothing", "SucceededUnsent"]);
        let disorder = self.count(&[
            "FirstArrivalOutOfOrder",
            "ClaimedOutOfTurn",
            "ClaimedUnderAnothersLease",
            "InsertedOutOfOrder",
        ]);
        let unexplained = self.count(&["UnexplainedRepeat", "UnexplainedLateRepeat", "SentTwiceInOneAttempt"]);
        let other = self.violations.len() - lost - disorder - unexplained;
        writeln!(f, "losses {lost}, disorder {disorder}, unexplained repeats {unexplained}, other violations {other}")?;
        for violation in self.violations.iter().take(20) {
            writeln!(f, "  {violation:?}")?;
        }
        match self.violations.len().saturating_sub(20) {
            0 => Ok(()),
            more => writeln!(f, "  and {more} more"),
        }
    }
}
