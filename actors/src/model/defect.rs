//! Deliberate defects of the model queue: what a checker that is worth its name must find.

/// One defect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Defect {
    /// An outcome is recorded without looking at its token.
    RecordWithoutToken,
    /// A delivery is claimed though another of its key before it is unfinished.
    ClaimPastHead,
    /// A failure does not hold back its key.
    FailureReleasesKey,
    /// The lease of a head cancelled in mid-attempt holds back nothing.
    HeldKeyIgnored,
    /// Places are drawn when a transaction begins, not when it commits.
    SequenceOrder,
    /// A leased row is claimed before its lease has ended.
    ClaimBeforeLeaseEnds,
    /// A row is claimed before it is due.
    ClaimBeforeDue,
    /// A claim counts no attempt.
    AttemptNotCounted,
    /// A claim over a lease that ran out keeps its token.
    TokenKept,
    /// The end of a lease is computed from the clock of a worker.
    LeaseByAnothersClock,
    /// A lease that ran out is claimed by nobody.
    LapsedNeverReclaimed,
    /// What has succeeded is claimed again.
    SucceededClaimedAgain,
    /// A late outcome overwrites what has ended.
    LateOutcomeOverwrites,
    /// A batch writes its first outcome into every row.
    FirstOutcomeForAll,
    /// Whatever the outcome, `succeeded` is written.
    RetryEndsIt,
    /// The worker is told that its outcome is recorded, and nothing is written.
    RecordedInNameOnly,
    /// The next of a key does not become its head.
    NextNotWoken,
    /// A lease that is given back takes its row with it.
    GivenBackDropped,
    /// An operator's cancel leaves the claim in place.
    CancelKeepsClaim,
    /// An operator's cancel is answered and not done.
    CancelDropped,
    /// An operator's retry moves the delivery to the end of its key.
    RetryMovesToTheEnd,
    /// What was rolled back is there.
    RolledBackVisible,
    /// Some of what was committed is not there.
    CommitLost,
}

impl Defect {
    /// Every defect.
    pub const ALL: [Self; 23] = [
        Self::RecordWithoutToken,
        Self::ClaimPastHead,
        Self::FailureReleasesKey,
        Self::HeldKeyIgnored,
        Self::SequenceOrder,
        Self::ClaimBeforeLeaseEnds,
        Self::ClaimBeforeDue,
        Self::AttemptNotCounted,
        Self::TokenKept,
        Self::LeaseByAnothersClock,
        Self::LapsedNeverReclaimed,
        Self::SucceededClaimedAgain,
        Self::LateOutcomeOverwrites,
        Self::FirstOutcomeForAll,
        Self::RetryEndsIt,
        Self::RecordedInNameOnly,
        Self::NextNotWoken,
        Self::GivenBackDropped,
        Self::CancelKeepsClaim,
        Self::CancelDropped,
        Self::RetryMovesToTheEnd,
        Self::RolledBackVisible,
        Self::CommitLost,
    ];
}
