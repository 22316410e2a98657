//! The run as the checker takes it.

use std::collections::HashSet;
use std::time::Duration;

use postrider_actors::checker::{self, History, Report, Rules};
use postrider_actors::{ClaimToken, DeliveryId, Settled};
use uuid::Uuid;

use crate::channel::name;
use crate::hosts::Fate;
use crate::journal::{RowState, Transition};
use crate::operator::{Came, Kind};
use crate::receiver::Answer;
use crate::record::Scope;
use crate::report::Summary;
use crate::settings::{BACKOFF_CAP, LEASE, SEND_TIMEOUT};
use crate::worker_log::{self, Line};

pub fn judge(seen: &Summary, journal: &[Transition], lines: &[Line], queue_ended_at: i64, margin: Duration) -> Report {
    let rules = Rules {
        send_timeout: SEND_TIMEOUT,
        drained_within: LEASE + BACKOFF_CAP + margin,
        expires: false,
        abandons: false,
        // Counted by the run itself.
        wanted_faults: Default::default(),
    };
    let history = History {
        commits: seen.commits.iter().map(commit).collect(),
        receipts: receipts(seen, journal, lines),
        transitions: journal.iter().map(transition).collect(),
        settlements: lines.iter().filter_map(settlement).collect(),
        acts: seen.acts.iter().map(act).collect(),
        faults: seen.faults.iter().filter_map(fault).collect(),
        ended: micros(queue_ended_at),
    };
    checker::check(&history, &rules)
}

fn micros(time: i64) -> Duration {
    Duration::from_micros(time.try_into().unwrap())
}

fn commit(one: &crate::hosts::Commit) -> checker::Commit {
    checker::Commit {
        delivery: DeliveryId::from_uuid(one.delivery),
        channel: name(one.channel),
        key: one.key.clone(),
        place: one.place,
        fate: match one.fate {
            Fate::Committed => checker::Fate::Committed,
            Fate::RolledBack => checker::Fate::RolledBack,
            Fate::Unknown => checker::Fate::Unknown,
        },
    }
}

/// An answer that the worker itself says it never got was lost on the way: the receiver does not see that.
fn receipts(seen: &Summary, journal: &[Transition], lines: &[Line]) -> Vec<checker::Receipt> {
    let unanswered: HashSet<Uuid> = lines
        .iter()
        .filter_map(|line| match line {
            Line::Ended { token, answered: false, .. } => Some(*token),
            _ => None,
        })
        .collect();
    let claims = journal.iter().filter_map(|one| Some((one.delivery, one.after.as_ref()?)));
    let lost: HashSet<(Uuid, u32)> = claims
        .filter(|(_, after)| after.token.is_some_and(|token| unanswered.contains(&token)))
        .map(|(delivery, after)| (delivery, after.attempt))
        .collect();
    let receipt = |one: &crate::receiver::Received| checker::Receipt {
        delivery: DeliveryId::from_uuid(one.delivery),
        attempt: one.attempt,
        worker: checker::Worker { replica: one.replica, sender: u32::try_from(one.channel).unwrap() },
        content: one.content,
        at: one.at,
        answer: match one.answer {
            _ if lost.contains(&(one.delivery, one.attempt)) => checker::Answer::Nothing,
            Answer::Success => checker::Answer::Success,
            Answer::Retry => checker::Answer::Retry,
            Answer::Refuse => checker::Answer::Refuse,
            Answer::Nothing => checker::Answer::Nothing,
        },
    };
    seen.received.iter().map(receipt).collect()
}

fn transition(one: &Transition) -> checker::Transition {
    let state = |row: &RowState| checker::RowState {
        status: row.status.parse().unwrap(),
        token: row.token.map(ClaimToken::from_uuid),
        attempt: row.attempt,
        due: micros(row.due),
        claimable: row.claimable,
    };
    checker::Transition {
        delivery: DeliveryId::from_uuid(one.delivery),
        at: micros(one.at),
        before: one.before.as_ref().map(state),
        after: one.after.as_ref().map(state),
    }
}

fn settlement(line: &Line) -> Option<checker::Settlement> {
    let Line::Settled { delivery, token, settled, .. } = line else { return None };
    Some(checker::Settlement {
        delivery: DeliveryId::from_uuid(*delivery),
        token: ClaimToken::from_uuid(*token),
        settled: match settled {
            worker_log::Came::Recorded(status) => Settled::Recorded(status.parse().unwrap()),
            worker_log::Came::LeaseLost => Settled::LeaseLost,
            worker_log::Came::EffectFailed => Settled::EffectFailed,
            worker_log::Came::Unrecorded => Settled::Unrecorded,
        },
    })
}

fn act(one: &crate::operator::Act) -> checker::OperatorAct {
    checker::OperatorAct {
        delivery: DeliveryId::from_uuid(one.delivery),
        act: match one.kind {
            Kind::Retry => checker::Act::Retry,
            Kind::Cancel => checker::Act::Cancel,
        },
        result: match one.result {
            Came::Done => checker::ActResult::Done,
            Came::Refused => checker::ActResult::Refused,
            Came::Unknown => checker::ActResult::Unknown,
        },
    }
}

/// What hit only hosts explains nothing. A channel's two senders are one to whom sees them from outside.
fn fault(one: &crate::record::Fault) -> Option<checker::Fault> {
    let scope = match one.scope {
        Scope::Senders { replica, channel } => {
            checker::Scope::Sender(checker::Worker { replica, sender: u32::try_from(channel).unwrap() })
        }
        Scope::Claimer { replica } => checker::Scope::Claimer(replica),
        Scope::Replica { replica } => checker::Scope::Replica(replica),
        Scope::Database => checker::Scope::Database,
        Scope::Receiver => checker::Scope::Receiver,
        Scope::Hosts => return None,
    };
    Some(checker::Fault { kind: one.kind.name().to_owned(), scope, from: one.from, until: one.until })
}
