//! What a finding means and what to do, for whoever is called at three in the morning.

use postrider_actors::FindingKind;

/// What is wrong, in a sentence.
pub const fn meaning(kind: FindingKind) -> &'static str {
    match kind {
        FindingKind::Overdue => "due, held back by nothing, and nobody has claimed it",
        FindingKind::OverduePastMaxAge => {
            "due, never claimed, and past its channel's MAX_AGE: it will be failed unsent when it is claimed"
        }
        FindingKind::ChannelNotRegistered => "due, and of a channel that is not registered in this program",
        FindingKind::LeaseExpired => "its worker was lost in the middle of an attempt, and nobody has claimed it again",
        FindingKind::OutOfOrder => "claimable or already sent while an earlier one of its ordering key is unfinished",
        FindingKind::DuplicateOrdinal => "two unfinished deliveries have the same place in their ordering key",
        FindingKind::KeyWithoutHead => "first of its ordering key, but it waits, and nothing is left to release it",
        FindingKind::KeyMissing => "it has an ordering key whose row in delivery_orderings is gone",
        FindingKind::KeyMiscounted => "a key's row in delivery_orderings disagrees with its deliveries",
        FindingKind::ReleasePostponed => "its turn has come, but a transaction has been holding its ordering key",
        FindingKind::RuleMissing => "a constraint or index that keeps the queue's rules is missing or not valid",
    }
}

/// What to do next, in a sentence or two.
pub const fn next_step(kind: FindingKind) -> &'static str {
    match kind {
        FindingKind::Overdue | FindingKind::LeaseExpired => {
            "Look at /health/actors of each replica. None runs, or the channel is down: start one. All run well and \
             postrider_deliveries_pending grows: they are too few, or receivers hang; raise --slots-per-sender."
        }
        FindingKind::OverduePastMaxAge => {
            "Bring a replica back as for overdue. What it then fails can be sent after all by `postrider deliveries retry`."
        }
        FindingKind::ChannelNotRegistered => {
            "If another program serves the channel, see whether it runs. If none does any more, cancel its deliveries."
        }
        FindingKind::OutOfOrder | FindingKind::DuplicateOrdinal => {
            "Postrider does not do this: something else wrote to the table. Stop that; `postrider deliveries cancel` \
             those that must not be sent any more."
        }
        FindingKind::KeyWithoutHead => {
            "Nothing sends the key's deliveries until this is mended. Nobody but Postrider may write to its tables. Set \
             claimable = true on the delivery named here, which is the first of its key."
        }
        FindingKind::KeyMissing | FindingKind::KeyMiscounted => {
            "A later delivery of the key may wait for ever or overtake. Nobody but Postrider may write to its tables. Stop \
             what records to the key, and set unfinished and last_ordinal to what its pending and failed deliveries say."
        }
        FindingKind::ReleasePostponed => {
            "If pg_stat_activity shows a transaction open for minutes, find out whose and end it. If it shows none, no \
             replica runs: start one."
        }
        FindingKind::RuleMissing => "Restore the schema: compare with a freshly migrated database.",
    }
}
