//! What receivers got: something of everything that succeeded, first arrivals in order, and every repeat with its cause.

use std::collections::{BTreeMap, HashSet};

use super::Rules;
use super::history::{Answer, Commit, Fate, Receipt, Scope};
use super::journal::{Step, step};
use super::report::{Cause, Report, Violation};
use super::view::{Life, View};
use crate::outcome::Status;

/// Every receipt of every delivery follows from a claim, and from the receipt before it.
pub(super) fn receipts(view: &View<'_>, rules: &Rules, report: &mut Report) {
    for (&delivery, life) in &view.lives {
        let mut attempts = HashSet::new();
        let claimed: HashSet<u32> = life
            .transitions
            .iter()
            .filter(|transition| step(transition) == Step::Claimed)
            .filter_map(|transition| transition.after)
            .map(|after| after.attempt)
            .collect();
        for receipt in &life.receipts {
            if !claimed.contains(&receipt.attempt) {
                report.violations.push(Violation::SentWithoutClaim { delivery, attempt: receipt.attempt });
            }
            if !attempts.insert((receipt.attempt, receipt.worker)) && !given_back(life) {
                report.violations.push(Violation::SentTwiceInOneAttempt { delivery, attempt: receipt.attempt });
            }
        }
        if life.receipts.windows(2).any(|pair| pair[0].content != pair[1].content) {
            report.violations.push(Violation::ContentChanged { delivery });
        }
        let answered = |answer| life.receipts.iter().any(|receipt| receipt.answer == answer);
        for transition in &life.transitions {
            match step(transition) {
                Step::Ended(Status::Succeeded) if !answered(Answer::Success) => {
                    report.violations.push(Violation::SucceededUnsent { delivery });
                }
                Step::Ended(Status::Failed) if !answered(Answer::Refuse) && !rules.expires => {
                    report.violations.push(Violation::FailedUnrefused { delivery });
                }
                _ => {}
            }
        }
        for pair in life.receipts.windows(2) {
            repeat(view, rules, life, pair[0], pair[1], report);
        }
    }
}

fn given_back(life: &Life<'_>) -> bool {
    life.transitions.iter().any(|transition| step(transition) == Step::GivenBack)
}

/// Why `next` came though `last` had come.
fn repeat(view: &View<'_>, rules: &Rules, life: &Life<'_>, last: &Receipt, next: &Receipt, report: &mut Report) {
    let delivery = next.delivery;
    let spoilt = |receipt: &Receipt, until, scopes: fn(Scope) -> bool| {
        view.history.faults.iter().any(|fault| {
            let overlaps = fault.from <= until && fault.until + rules.send_timeout >= receipt.at;
            overlaps && fault.scope.covers(receipt.worker) && scopes(fault.scope)
        })
    };
    if next.attempt < last.attempt {
        // It was sent, or begun, before its lease ended, by somebody who then stood still.
        let stalled = spoilt(next, next.at, |scope| matches!(scope, Scope::Replica(_) | Scope::Sender(_)));
        if stalled {
            report.late_repeats += 1;
        } else {
            report.violations.push(Violation::UnexplainedLateRepeat { delivery, attempt: next.attempt });
        }
        return;
    }
    let cause = match last.answer {
        Answer::Retry => Cause::ReceiverAsked,
        Answer::Nothing => Cause::AnswerLost,
        _ if retried_between(life, last.attempt, next.attempt) => Cause::Operator,
        _ if spoilt(last, next.at, |_| true) => Cause::Unrecorded,
        _ => {
            report.violations.push(Violation::UnexplainedRepeat { delivery, attempt: next.attempt });
            return;
        }
    };
    *report.repeats.entry(cause).or_default() += 1;
}

/// Whether an operator asked for it again after the claim of `last` and before that of `next`.
fn retried_between(life: &Life<'_>, last: u32, next: u32) -> bool {
    let claims = |attempt| {
        life.transitions.iter().rposition(|transition| {
            step(transition) == Step::Claimed && transition.after.is_some_and(|after| after.attempt == attempt)
        })
    };
    let (Some(from), Some(to)) = (claims(last), claims(next)) else { return false };
    let between = life.transitions.get(from..to).unwrap_or_default();
    between.iter().any(|transition| step(transition) == Step::RetriedByOperator)
}

/// Within a key, deliveries first arrive in commit order.
pub(super) fn first_arrivals(view: &View<'_>, report: &mut Report) {
    let mut firsts: BTreeMap<(&str, &str), Vec<(&Receipt, &Commit)>> = BTreeMap::new();
    for life in view.lives.values() {
        let (Some(commit), Some(first)) = (life.commit, life.receipts.first()) else { continue };
        if let Some(key) = commit.key.as_deref().filter(|_| commit.fate != Fate::RolledBack) {
            firsts.entry((commit.channel.as_str(), key)).or_default().push((first, commit));
        }
    }
    for arrivals in firsts.values_mut() {
        arrivals.sort_by_key(|(receipt, _)| receipt.at);
        for pair in arrivals.windows(2) {
            if pair[0].1.place > pair[1].1.place {
                report.violations.push(Violation::FirstArrivalOutOfOrder {
                    delivery: pair[1].1.delivery,
                    after: pair[0].1.delivery,
                });
            }
        }
    }
}
