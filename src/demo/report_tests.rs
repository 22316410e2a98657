//! Everything that can go otherwise than expected is seen: facts as they should be, with one thing changed.
#![allow(clippy::unwrap_used)]

use std::time::{Duration, Instant};

use postrider_actors::Status;
use uuid::Uuid;

use super::LogoutReport;
use super::cast::{Attempts, Met, Role, cast};
use super::database::Delivery;
use super::domain::Session;
use super::facts::Facts;
use super::pace::Pace;
use super::plan::{self, Fate};
use super::receiver::Receipt;
use crate::identity::SessionId;

fn all() -> (Vec<Role>, Vec<Session>) {
    let cast = cast(&Pace::of(Duration::from_secs(10)), false);
    let planned = plan::accounts(&cast).into_iter().chain([plan::opening(&cast)]);
    let sessions = planned.flat_map(|account| account.sessions);
    let sessions =
        sessions.map(|session| Session { id: SessionId(Uuid::now_v7()), fate: session.fate, roles: session.roles });
    let sessions = sessions.collect();
    (cast, sessions)
}

fn delivery(role: usize, roles: &[Role], sid: Uuid) -> Delivery {
    let expected = roles[role].expected;
    let (Attempts::Exactly(attempts) | Attempts::AtLeast(attempts)) = expected.attempts;
    let last_error = expected.reason.map(|reason| reason.to_string());
    Delivery { id: Uuid::now_v7(), role, sid: Some(sid), status: expected.status, attempts, last_error }
}

fn as_expected<'a>(cast: &'a [Role], sessions: &'a [Session]) -> Facts<'a> {
    let ended = sessions.iter().filter(|session| session.fate == Fate::Ended);
    let told = ended.flat_map(|session| session.roles.iter().map(|role| (*role, session.id.0)));
    let deliveries: Vec<Delivery> = told.map(|(role, sid)| delivery(role, cast, sid)).collect();
    let met = deliveries.iter().filter(|delivery| cast[delivery.role].expected.met == Met::EveryAttempt);
    let receipts = met.flat_map(|delivery| (1..=delivery.attempts).map(|seen| receipt(cast, delivery, seen))).collect();
    let connections = cast.iter().map(|role| usize::from(role.expected.met != Met::NoConnection)).collect();
    Facts { cast, sessions: sessions.iter().collect(), deliveries, receipts, connections, complaints: Vec::new() }
}

fn receipt(cast: &[Role], delivery: &Delivery, seen: u32) -> Receipt {
    let role = &cast[delivery.role];
    let at = Instant::now() + role.expected.apart * seen;
    let answer = role.behaviour.answer(seen);
    Receipt { role: delivery.role, jti: delivery.id, sid: delivery.sid.unwrap(), seen, answer, at }
}

/// The receivers that differ, and whether the report does, once `change` is made.
fn differing(change: impl FnOnce(&mut Facts<'_>)) -> (Vec<&'static str>, bool) {
    let (cast, sessions) = all();
    let mut facts = as_expected(&cast, &sessions);
    change(&mut facts);
    let report = LogoutReport::new(&facts);
    let receivers = report.receivers.iter().filter(|receiver| !receiver.differences.is_empty());
    (receivers.map(|receiver| receiver.receiver).collect(), report.differs())
}

fn one(name: &'static str) -> (Vec<&'static str>, bool) {
    (vec![name], true)
}

fn position(facts: &Facts<'_>, name: &str) -> usize {
    facts.cast.iter().position(|role| role.name == name).unwrap()
}

fn first_of<'a>(facts: &'a mut Facts<'_>, name: &str) -> &'a mut Delivery {
    let role = position(facts, name);
    facts.deliveries.iter_mut().find(|delivery| delivery.role == role).unwrap()
}

#[test]
fn nothing_differs_where_all_is_as_expected() {
    assert_eq!(differing(|_| ()), (Vec::new(), false));
}

#[test]
fn a_delivery_that_ended_otherwise_differs() {
    assert_eq!(differing(|facts| first_of(facts, "prompt").status = Status::Failed), one("prompt"));
    assert_eq!(differing(|facts| first_of(facts, "moved").last_error = Some("301".into())), one("moved"));
    assert_eq!(differing(|facts| first_of(facts, "private").attempts = 2), one("private"));
}

#[test]
fn a_delivery_that_is_missing_or_that_nobody_asked_for_differs() {
    let missing = |facts: &mut Facts<'_>| {
        let id = first_of(facts, "terse").id;
        facts.deliveries.retain(|delivery| delivery.id != id);
        facts.receipts.retain(|receipt| receipt.jti != id);
    };
    assert_eq!(differing(missing), one("terse"));
    let twice = |facts: &mut Facts<'_>| {
        let again = Delivery { id: Uuid::now_v7(), ..first_of(facts, "inside").clone() };
        facts.deliveries.push(again);
    };
    assert_eq!(differing(twice), one("inside"));
}

#[test]
fn a_receipt_that_is_missing_or_too_many_differs() {
    let lost = |facts: &mut Facts<'_>| {
        let role = position(facts, "slow");
        let lost = facts.receipts.iter().position(|receipt| receipt.role == role).unwrap();
        facts.receipts.remove(lost);
    };
    assert_eq!(differing(lost), one("slow"));
    let unknown = |facts: &mut Facts<'_>| {
        let role = position(facts, "prompt");
        let known = *facts.receipts.iter().find(|receipt| receipt.role == role).unwrap();
        facts.receipts.push(Receipt { jti: Uuid::now_v7(), ..known });
    };
    assert_eq!(differing(unknown), one("prompt"));
}

#[test]
fn coming_again_before_retry_after_or_within_the_lease_differs() {
    for name in ["busy", "orphaned"] {
        let early = |facts: &mut Facts<'_>| {
            let (role, now) = (position(facts, name), Instant::now());
            facts.receipts.iter_mut().filter(|receipt| receipt.role == role).for_each(|receipt| receipt.at = now);
        };
        assert_eq!(differing(early), one(name));
    }
}

#[test]
fn a_connection_to_a_refused_address_or_none_to_another_differs() {
    for (name, connections) in [("inside", 1), ("impostor", 0)] {
        let otherwise = |facts: &mut Facts<'_>| {
            let role = position(facts, name);
            facts.connections[role] = connections;
        };
        assert_eq!(differing(otherwise), one(name));
    }
}

#[test]
fn a_request_that_a_receiver_found_fault_with_differs() {
    let refused = |facts: &mut Facts<'_>| facts.complaints.push((position(facts, "terse"), "signature"));
    assert_eq!(differing(refused), one("terse"));
}

#[test]
fn hearing_of_a_session_that_did_not_end_differs() {
    for fate in [Fate::RolledBack, Fate::Kept] {
        let heard = |facts: &mut Facts<'_>| {
            let sid = *facts.sids(fate).first().unwrap();
            facts.receipts[0].sid = sid;
        };
        assert_eq!(differing(heard), (Vec::new(), true));
    }
}
