//! What the rows went through: only what a delivery's life allows, one at a time, in commit order.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::Rules;
use super::history::{Act, ActResult, DatabaseTime, RowState, Transition};
use super::report::{Report, Violation};
use super::view::View;
use crate::ids::{ChannelName, ClaimToken, DeliveryId};
use crate::outcome::{Settled, Status};

/// What one change of a row is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Inserted,
    Claimed,
    /// Retried later by an outcome.
    Returned,
    /// A deferral, or a lease given back: the attempt does not count.
    GivenBack,
    /// Became the head of its key.
    Released,
    Ended(Status),
    Cancelled,
    RetriedByOperator,
    Deleted,
    Illegal,
}

pub(super) fn step(transition: &Transition) -> Step {
    let (before, after) = match (transition.before, transition.after) {
        (None, Some(after)) => {
            let fresh = after.status == Status::Pending && after.token.is_none() && after.attempt == 0;
            return if fresh { Step::Inserted } else { Step::Illegal };
        }
        (Some(before), None) if before.status != Status::Pending => return Step::Deleted,
        (Some(before), Some(after)) => (before, after),
        _ => return Step::Illegal,
    };
    match (before.status, after.status) {
        (Status::Pending, Status::Pending) => pending_step(before, after),
        (Status::Pending, Status::Succeeded | Status::Failed)
            if before.token.is_some() && after.token.is_none() && before.attempt == after.attempt =>
        {
            Step::Ended(after.status)
        }
        (Status::Pending | Status::Failed, Status::Cancelled) if after.token.is_none() => Step::Cancelled,
        (Status::Failed | Status::Cancelled, Status::Pending) if after.token.is_none() => Step::RetriedByOperator,
        _ => Step::Illegal,
    }
}

fn pending_step(before: RowState, after: RowState) -> Step {
    let counted = i64::from(after.attempt) - i64::from(before.attempt);
    match (before.token, after.token) {
        (old, Some(new)) if old != Some(new) && counted == 1 => Step::Claimed,
        (Some(_), None) if counted == 0 => Step::Returned,
        (Some(_), None) if counted == -1 => Step::GivenBack,
        (None, None) if counted == 0 && after.claimable && !before.claimable => Step::Released,
        _ => Step::Illegal,
    }
}

/// Each change is one that a delivery's life knows, and follows from the last.
pub(super) fn legality(view: &View<'_>, rules: &Rules, report: &mut Report) {
    let mut tokens: HashSet<ClaimToken> = HashSet::new();
    let mut acts = acts(view);
    for (&delivery, life) in &view.lives {
        let mut last: Option<RowState> = None;
        for transition in &life.transitions {
            let step = step(transition);
            if step == Step::Illegal || transition.before != last {
                report.violations.push(Violation::IllegalChange { delivery, change: **transition });
            }
            last = transition.after;
            match step {
                Step::Claimed => claim(transition, &mut tokens, report),
                Step::Cancelled => {
                    let by_operator = acts.take(delivery, Act::Cancel);
                    if !by_operator && !rules.abandons {
                        report.violations.push(Violation::NobodyAskedForIt { delivery, act: Act::Cancel });
                    }
                }
                Step::RetriedByOperator if !acts.take(delivery, Act::Retry) => {
                    report.violations.push(Violation::NobodyAskedForIt { delivery, act: Act::Retry });
                }
                _ => {}
            }
        }
    }
    for (delivery, act) in acts.done_yet_unseen() {
        report.violations.push(Violation::ActWithoutEffect { delivery, act });
    }
}

fn claim(transition: &Transition, tokens: &mut HashSet<ClaimToken>, report: &mut Report) {
    let (Some(before), Some(after)) = (transition.before, transition.after) else { return };
    let delivery = transition.delivery;
    if transition.at < before.due {
        report.violations.push(if before.token.is_some() {
            Violation::ClaimedWhileHeld { delivery, early_by: before.due.saturating_sub(transition.at) }
        } else {
            Violation::ClaimedBeforeDue { delivery, early_by: before.due.saturating_sub(transition.at) }
        });
    }
    if !before.claimable {
        report.violations.push(Violation::ClaimedOutOfTurn { delivery });
    }
    if after.token.is_none_or(|token| !tokens.insert(token)) {
        report.violations.push(Violation::TokenUsedTwice { delivery });
    }
}

struct Acts {
    done: BTreeMap<(DeliveryId, u8), usize>,
    unknown: BTreeMap<(DeliveryId, u8), usize>,
}

fn acts(view: &View<'_>) -> Acts {
    let mut acts = Acts { done: BTreeMap::new(), unknown: BTreeMap::new() };
    for act in &view.history.acts {
        let counted = match act.result {
            ActResult::Done => &mut acts.done,
            ActResult::Unknown => &mut acts.unknown,
            ActResult::Refused => continue,
        };
        *counted.entry((act.delivery, act.act as u8)).or_default() += 1;
    }
    acts
}

impl Acts {
    /// Uses up one act that can have made the change.
    fn take(&mut self, delivery: DeliveryId, act: Act) -> bool {
        [&mut self.done, &mut self.unknown].into_iter().any(|acts| {
            let left = acts.get_mut(&(delivery, act as u8)).filter(|left| **left > 0);
            left.is_some_and(|left| {
                *left -= 1;
                true
            })
        })
    }

    fn done_yet_unseen(self) -> impl Iterator<Item = (DeliveryId, Act)> {
        let left = self.done.into_iter().filter(|(_, left)| *left > 0);
        left.map(|((delivery, act), _)| (delivery, if act == Act::Retry as u8 { Act::Retry } else { Act::Cancel }))
    }
}

/// One key as the journal is walked.
#[derive(Default)]
struct Key {
    unfinished: BTreeSet<(u64, DeliveryId)>,
    held_until: DatabaseTime,
}

/// A delivery is claimed only when all of its key before it have ended, and no lease of one cancelled runs on.
pub(super) fn order(view: &View<'_>, report: &mut Report) {
    let mut keys: HashMap<(&ChannelName, &str), Key> = HashMap::new();
    for transition in &view.history.transitions {
        let delivery = transition.delivery;
        let Some(commit) = view.lives.get(&delivery).and_then(|life| life.commit) else { continue };
        let Some(name) = &commit.key else { continue };
        let key = keys.entry((&commit.channel, name)).or_default();
        let own = (commit.place, delivery);
        match step(transition) {
            Step::Inserted => {
                if key.unfinished.last().is_some_and(|last| last.0 > commit.place) {
                    report.violations.push(Violation::InsertedOutOfOrder { delivery });
                }
                key.unfinished.insert(own);
            }
            Step::Claimed => {
                if key.unfinished.first().is_some_and(|head| *head < own) {
                    report.violations.push(Violation::ClaimedOutOfTurn { delivery });
                }
                if transition.at < key.held_until {
                    let early_by = key.held_until.saturating_sub(transition.at);
                    report.violations.push(Violation::ClaimedUnderAnothersLease { delivery, early_by });
                }
            }
            Step::Ended(Status::Succeeded) | Step::Deleted => {
                key.unfinished.remove(&own);
            }
            Step::Cancelled => {
                key.unfinished.remove(&own);
                if let Some(before) = transition.before.filter(|before| before.token.is_some()) {
                    key.held_until = key.held_until.max(before.due);
                }
            }
            Step::RetriedByOperator => {
                key.unfinished.insert(own);
            }
            _ => {}
        }
    }
}

/// Who was told that an outcome is written wrote it, and who was told that the lease is lost wrote nothing.
pub(super) fn settlements(view: &View<'_>, report: &mut Report) {
    let mut written: HashMap<ClaimToken, (DeliveryId, Status)> = HashMap::new();
    for transition in &view.history.transitions {
        let (Some(before), Some(after)) = (transition.before, transition.after) else { continue };
        if let Some(token) =
            before.token.filter(|_| matches!(step(transition), Step::Ended(_) | Step::Returned | Step::GivenBack))
        {
            written.insert(token, (transition.delivery, after.status));
        }
    }
    for settlement in &view.history.settlements {
        let delivery = settlement.delivery;
        match (settlement.settled, written.get(&settlement.token)) {
            (Settled::Recorded(status), found) if found != Some(&(delivery, status)) => {
                report.violations.push(Violation::RecordedWithoutHolding { delivery });
            }
            // An answer that was lost is asked for again, and then the row is no longer held.
            _ => {}
        }
    }
}

/// At the end everything has ended, or waits within its rules.
pub(super) fn endings(view: &View<'_>, rules: &Rules, report: &mut Report) {
    let mut heads: HashMap<(&ChannelName, &str), u64> = HashMap::new();
    let states = view.lives.values().filter_map(|life| {
        let state = life.transitions.last().and_then(|last| last.after)?;
        Some((life.commit?, state))
    });
    for (commit, state) in states.clone() {
        if let (Some(key), Status::Pending | Status::Failed) = (&commit.key, state.status) {
            let head = heads.entry((&commit.channel, key)).or_insert(commit.place);
            *head = commit.place.min(*head);
        }
    }
    for (commit, state) in states {
        let delivery = commit.delivery;
        *report.ended.entry(state.status).or_default() += 1;
        if state.status != Status::Pending {
            continue;
        }
        let waits = commit.key.as_ref().and_then(|key| heads.get(&(&commit.channel, key.as_str())));
        let overdue = view.history.ended.saturating_sub(state.due);
        if waits.is_some_and(|head| *head < commit.place) {
            continue; // behind a failure, for an operator to end
        } else if overdue > rules.drained_within {
            report.violations.push(Violation::Stuck { delivery, overdue });
        } else if !state.claimable && rules.drained_within < view.history.ended {
            report.violations.push(Violation::WaitsBehindNothing { delivery });
        }
    }
}
