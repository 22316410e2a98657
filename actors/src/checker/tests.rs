//! Small histories, each clean but for one thing.
#![allow(clippy::unwrap_used)]

use uuid::Uuid;

use super::*;
use crate::ids::{ClaimToken, DeliveryId};
use crate::outcome::{Settled, Status};

const WORKER: Worker = Worker { replica: 1, sender: 0 };

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn id(number: u128) -> DeliveryId {
    DeliveryId::from_uuid(Uuid::from_u128(number))
}

fn token(number: u128) -> ClaimToken {
    ClaimToken::from_uuid(Uuid::from_u128(number))
}

fn row(status: Status, claim: Option<u128>, attempt: u32, due: u64) -> Option<RowState> {
    Some(RowState { status, token: claim.map(token), attempt, due: secs(due), claimable: true })
}

impl History {
    fn commit(mut self, delivery: u128, key: Option<&str>, fate: Fate) -> Self {
        let (delivery, channel, place) = (id(delivery), "c".parse().unwrap(), self.commits.len() as u64);
        self.commits.push(Commit { delivery, channel, key: key.map(Into::into), place, fate });
        self
    }

    fn write(mut self, delivery: u128, at: u64, after: Option<RowState>) -> Self {
        let delivery = id(delivery);
        let before = self.transitions.iter().rev().find(|one| one.delivery == delivery).and_then(|one| one.after);
        self.transitions.push(Transition { delivery, at: secs(at), before, after });
        self
    }

    fn recorded(self, delivery: u128, key: Option<&str>) -> Self {
        self.commit(delivery, key, Fate::Committed).write(delivery, 0, row(Status::Pending, None, 0, 0))
    }

    fn claim(self, delivery: u128, at: u64, claim: u128, attempt: u32) -> Self {
        self.write(delivery, at, row(Status::Pending, Some(claim), attempt, at + 60))
    }

    fn receipt(mut self, delivery: u128, attempt: u32, at: u64, answer: Answer) -> Self {
        let delivery = id(delivery);
        self.receipts.push(Receipt { delivery, attempt, worker: WORKER, content: 7, at: secs(at), answer });
        self
    }

    fn sent(self, delivery: u128, at: u64, claim: u128, attempt: u32) -> Self {
        self.claim(delivery, at, claim, attempt).receipt(delivery, attempt, at + 1, Answer::Success).write(
            delivery,
            at + 2,
            row(Status::Succeeded, None, attempt, at + 60),
        )
    }

    fn fault(mut self, scope: Scope, from: u64, until: u64) -> Self {
        self.faults.push(Fault { kind: "test".into(), scope, from: secs(from), until: secs(until) });
        self
    }

    #[track_caller]
    fn shows(mut self, kinds: &[&str]) {
        self.ended = secs(1000);
        let report = check(&self, &rules());
        let found: Vec<String> = report.violations.iter().map(Violation::kind).collect();
        assert_eq!(found, kinds, "{report}");
    }
}

fn rules() -> Rules {
    Rules {
        send_timeout: secs(10),
        drained_within: secs(60),
        expires: false,
        abandons: false,
        wanted_faults: BTreeMap::new(),
    }
}

fn one() -> History {
    History::default().recorded(1, None)
}

#[test]
fn what_is_sent_once_and_recorded_is_clean() {
    one().sent(1, 1, 1, 1).shows(&[]);
    History::default().commit(1, None, Fate::RolledBack).commit(2, None, Fate::Unknown).shows(&[]);
}

#[test]
fn what_is_lost_left_or_from_nowhere_is_found() {
    History::default().commit(1, None, Fate::Committed).shows(&["Lost"]);
    one().shows(&["Stuck"]);
    one().claim(1, 1, 1, 1).shows(&["Stuck"]);
    History::default().receipt(1, 1, 1, Answer::Success).shows(&["Phantom", "SentWithoutClaim"]);
    let rolled_back = History::default().commit(1, None, Fate::RolledBack);
    rolled_back.write(1, 1, row(Status::Pending, None, 0, 2000)).shows(&["RolledBackYetThere"]);
    let asleep = RowState { claimable: false, due: secs(999), ..row(Status::Pending, None, 0, 0).unwrap() };
    History::default().commit(1, Some("k"), Fate::Committed).write(1, 0, Some(asleep)).shows(&["WaitsBehindNothing"]);
}

#[test]
fn order_within_a_key_is_that_of_commits() {
    let two = || History::default().recorded(1, Some("k")).recorded(2, Some("k"));
    two().sent(1, 1, 1, 1).sent(2, 10, 2, 1).shows(&[]);
    two().sent(2, 1, 2, 1).sent(1, 10, 1, 1).shows(&["ClaimedOutOfTurn", "FirstArrivalOutOfOrder"]);
}

#[test]
fn a_repeat_needs_a_cause_that_covers_its_worker() {
    let first = |answer| one().claim(1, 1, 1, 1).receipt(1, 1, 2, answer);
    first(Answer::Success).sent(1, 61, 2, 2).shows(&["UnexplainedRepeat"]);
    first(Answer::Nothing).sent(1, 61, 2, 2).shows(&[]);
    first(Answer::Success).fault(Scope::Replica(1), 3, 4).sent(1, 61, 2, 2).shows(&[]);
    first(Answer::Success).fault(Scope::Replica(2), 3, 4).sent(1, 61, 2, 2).shows(&["UnexplainedRepeat"]);
    let late = || one().claim(1, 1, 1, 1).sent(1, 61, 2, 2).receipt(1, 1, 70, Answer::Success);
    late().shows(&["UnexplainedLateRepeat"]);
    late().fault(Scope::Replica(1), 2, 69).shows(&[]);
}

#[test]
fn a_claim_respects_leases_tokens_and_counts() {
    let held = || one().claim(1, 1, 1, 1);
    held().sent(1, 60, 2, 2).shows(&["ClaimedWhileHeld"]);
    held().claim(1, 61, 2, 2).sent(1, 121, 1, 3).shows(&["TokenUsedTwice"]);
    held().sent(1, 61, 2, 1).shows(&["IllegalChange"]);
}

#[test]
fn what_has_ended_stays_so_and_was_sent() {
    one().sent(1, 1, 1, 1).write(1, 5, row(Status::Cancelled, None, 1, 61)).shows(&["IllegalChange"]);
    one().write(1, 5, row(Status::Cancelled, None, 0, 0)).shows(&["NobodyAskedForIt"]);
    one().claim(1, 1, 1, 1).write(1, 2, row(Status::Succeeded, None, 1, 61)).shows(&["SucceededUnsent"]);
    let mut changed = one().claim(1, 1, 1, 1).receipt(1, 1, 2, Answer::Nothing).sent(1, 61, 2, 2);
    changed.receipts[1].content = 8;
    changed.shows(&["ContentChanged"]);
}

#[test]
fn workers_and_operators_are_told_what_is_so() {
    let mut told = one().sent(1, 1, 1, 1);
    let settled = Settled::Recorded(Status::Succeeded);
    told.settlements.push(Settlement { delivery: id(1), token: token(9), settled });
    told.shows(&["RecordedWithoutHolding"]);
    let mut told = one().sent(1, 1, 1, 1);
    told.acts.push(OperatorAct { delivery: id(1), act: Act::Cancel, result: ActResult::Done });
    told.shows(&["ActWithoutEffect"]);
}

#[test]
fn a_run_without_its_faults_shows_nothing() {
    let rules = Rules { wanted_faults: BTreeMap::from([("kill".into(), 1)]), ..rules() };
    let mut history = one().sent(1, 1, 1, 1);
    history.ended = secs(1000);
    assert_eq!(check(&history, &rules).violations[0].kind(), "Vacuous");
}
