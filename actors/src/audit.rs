//! What an audit of the queue can find: a closed list of broken promises.

use std::fmt;
use std::num::NonZeroU32;
use std::time::Duration;

use crate::ids::ChannelName;
use crate::ports::ChannelPolicy;

/// What is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FindingKind {
    /// Due, held back by nothing, and claimed by nobody.
    Overdue,
    /// The same, past the channel's MAX_AGE already.
    OverduePastMaxAge,
    /// The same, of a channel that is not registered here.
    ChannelNotRegistered,
    /// Its lease ended and nobody claimed it again.
    LeaseExpired,
    /// It can be claimed, or has succeeded, while an earlier one of its key is unfinished.
    OutOfOrder,
    /// Two of a key have the same ordinal.
    DuplicateOrdinal,
    /// The first unfinished of a key waits, and nothing will release it.
    KeyWithoutHead,
    /// Unfinished deliveries of a key that has no row of its own.
    KeyMissing,
    /// A key's counter or last ordinal disagrees with its deliveries.
    KeyMiscounted,
    /// A release has been postponed for long.
    ReleasePostponed,
    /// A constraint or index that keeps the rules is missing or not valid.
    RuleMissing,
}

impl FindingKind {
    /// Every kind.
    pub const ALL: [Self; 11] = [
        Self::Overdue,
        Self::OverduePastMaxAge,
        Self::ChannelNotRegistered,
        Self::LeaseExpired,
        Self::OutOfOrder,
        Self::DuplicateOrdinal,
        Self::KeyWithoutHead,
        Self::KeyMissing,
        Self::KeyMiscounted,
        Self::ReleasePostponed,
        Self::RuleMissing,
    ];

    /// Its name in metrics and in output.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Overdue => "overdue",
            Self::OverduePastMaxAge => "overdue_past_max_age",
            Self::ChannelNotRegistered => "channel_not_registered",
            Self::LeaseExpired => "lease_expired",
            Self::OutOfOrder => "out_of_order",
            Self::DuplicateOrdinal => "duplicate_ordinal",
            Self::KeyWithoutHead => "key_without_head",
            Self::KeyMissing => "key_missing",
            Self::KeyMiscounted => "key_miscounted",
            Self::ReleasePostponed => "release_postponed",
            Self::RuleMissing => "rule_missing",
        }
    }
}

impl fmt::Display for FindingKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What an audit goes by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditPolicy {
    /// The channels that are registered here.
    pub channels: Vec<ChannelPolicy>,
    /// What has waited for less than this is not late.
    pub older_than: Duration,
    /// The most rows, or keys, that each check looks at.
    pub rows: NonZeroU32,
}

/// How much of one kind an audit found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FindingCount {
    /// What is wrong.
    pub kind: FindingKind,
    /// In which channel; `None`: not in any one.
    pub channel: Option<ChannelName>,
    /// How many, of those that were looked at.
    pub found: u64,
}
