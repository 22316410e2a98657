//! Everything that can go otherwise than expected is seen: facts as they should be, with one thing changed.
#![allow(clippy::unwrap_used)]

use postrider_actors::Status;
use uuid::Uuid;

use super::super::mailbox::Received;
use super::deliveries::MailDelivery;
use super::expected::{Expected, Kind, Why};
use super::facts::{Arrival, Facts};
use super::people::Person;
use super::report::MailReport;
use super::stage::DOMAIN;
use crate::identity::AccountId;

const KINDS: [Kind; 3] = [Kind::NewSignIn, Kind::Announcement, Kind::AccountRecovered];

fn message(kind: Kind, delivery: Uuid, to: &str) -> Received {
    let unsubscribe = match kind.is_subscribed_to() {
        true => "List-Unsubscribe: <https://a.example/>\r\nList-Unsubscribe-Post: List-Unsubscribe=One-Click\r\n",
        false => "",
    };
    let text = format!(
        "To: <{to}>\r\nMessage-ID: <{delivery}@{DOMAIN}>\r\n{unsubscribe}\r\n--b\r\n\
         Content-Transfer-Encoding: quoted-printable\r\n\r\nUndo it: /undo\r\n--b--\r\n"
    );
    Received { from: "no-reply@id.example.com".into(), to: to.into(), bytes: text.into_bytes(), connection: 0 }
}

/// What a test changes: deliveries, and the mailbox.
struct Seen {
    deliveries: Vec<MailDelivery>,
    mailbox: Vec<Received>,
}

/// For each kind one that arrives after a second attempt; one sign-in that is refused, one recovery link unsent.
fn as_expected(person: &Person) -> (Expected, Seen) {
    let (mut expected, mut deliveries, mut mailbox) = (Expected::default(), Vec::new(), Vec::new());
    let mut delivery = |kind, status, attempts, reason: Option<&str>| {
        let last_error = reason.map(str::to_owned);
        let id = Uuid::now_v7();
        deliveries.push(MailDelivery { id, kind, account: person.account, status, attempts, last_error });
        id
    };
    for kind in KINDS {
        expected.arrives_late(kind, person, "ada@example.net");
        let id = delivery(kind, Status::Succeeded, 2, Some("450"));
        mailbox.push(message(kind, id, "ada@example.net"));
    }
    expected.refused(Kind::NewSignIn, person, 550);
    delivery(Kind::NewSignIn, Status::Failed, 1, Some("550"));
    expected.unsent(Kind::RecoveryLink, person, Why::RecoveryCancelled);
    delivery(Kind::RecoveryLink, Status::Succeeded, 2, None);
    (expected, Seen { deliveries, mailbox })
}

/// The kinds that differ once `change` is made.
fn differing(change: impl FnOnce(&mut Seen)) -> Vec<Kind> {
    let person = Person { name: "ada".into(), account: AccountId(Uuid::now_v7()), primary: None, opted_out: false };
    let (expected, mut seen) = as_expected(&person);
    change(&mut seen);
    let Seen { deliveries, mailbox } = seen;
    let arrivals = mailbox.into_iter().map(|letter| Arrival::of(letter, &deliveries)).collect();
    let report = MailReport::new(&Facts { people: vec![person], expected, deliveries, arrivals, noted: Vec::new() });
    let differing: Vec<Kind> =
        report.lines.iter().filter(|line| !line.differences.is_empty()).map(|line| line.kind).collect();
    assert_eq!(report.differs(), !differing.is_empty());
    assert_eq!(report.to_string().contains("DIFFERS"), report.differs(), "{report}");
    differing
}

fn first(seen: &mut Seen, kind: Kind) -> &mut MailDelivery {
    seen.deliveries.iter_mut().find(|delivery| delivery.kind == kind).unwrap()
}

#[test]
fn nothing_differs_where_all_is_as_expected() {
    assert_eq!(differing(|_| ()), []);
}

#[test]
fn a_message_that_is_lost_comes_twice_or_comes_elsewhere_differs() {
    assert_eq!(differing(|seen| drop(seen.mailbox.remove(0))), [Kind::NewSignIn]);
    assert_eq!(differing(|seen| seen.mailbox.push(seen.mailbox[1].clone())), [Kind::Announcement]);
    assert_eq!(differing(|seen| seen.mailbox[0].to = "bob@example.net".into()), [Kind::NewSignIn]);
}

#[test]
fn a_message_that_must_not_come_differs() {
    let moot = |seen: &mut Seen| {
        let id = first(seen, Kind::RecoveryLink).id;
        seen.mailbox.push(message(Kind::RecoveryLink, id, "ada@example.net"));
    };
    assert_eq!(differing(moot), [Kind::RecoveryLink]);
    let nobodys = |seen: &mut Seen| seen.mailbox.push(message(Kind::Alert, Uuid::now_v7(), "ada@example.net"));
    assert_eq!(differing(nobodys), [Kind::Other]);
}

#[test]
fn a_delivery_that_ended_otherwise_differs() {
    assert_eq!(differing(|seen| first(seen, Kind::RecoveryLink).status = Status::Pending), [Kind::RecoveryLink]);
    assert_eq!(differing(|seen| first(seen, Kind::Announcement).attempts = 1), [Kind::Announcement]);
    let otherwise = |seen: &mut Seen| {
        let refused = seen.deliveries.iter_mut().find(|delivery| delivery.status == Status::Failed).unwrap();
        refused.last_error = Some("554".into());
    };
    assert_eq!(differing(otherwise), [Kind::NewSignIn]);
}

#[test]
fn a_delivery_that_is_missing_or_that_rolled_back_differs() {
    let missing = |seen: &mut Seen| {
        let id = first(seen, Kind::RecoveryLink).id;
        seen.deliveries.retain(|delivery| delivery.id != id);
    };
    assert_eq!(differing(missing), [Kind::RecoveryLink]);
    let never = |seen: &mut Seen| {
        let like = first(seen, Kind::RecoveryLink).clone();
        seen.deliveries.push(MailDelivery { id: Uuid::now_v7(), kind: Kind::PasskeyAdded, ..like });
    };
    assert_eq!(differing(never), [Kind::PasskeyAdded]);
}

#[test]
fn a_message_without_what_its_kind_needs_differs() {
    let change = |seen: &mut Seen, number: usize, from: &str, to: &str| {
        let bytes = seen.mailbox[number].text().replace(from, to).into_bytes();
        seen.mailbox[number].bytes = bytes;
    };
    assert_eq!(differing(|seen| change(seen, 2, "/undo", "/")), [Kind::AccountRecovered]);
    assert_eq!(differing(|seen| change(seen, 1, "=One-Click", "=Maybe")), [Kind::Announcement]);
    assert_eq!(differing(|seen| change(seen, 1, "List-Unsubscribe:", "List-Help:")), [Kind::Announcement]);
    assert_eq!(differing(|seen| change(seen, 0, "To: <ada@", "To: <bob@")), [Kind::NewSignIn]);
    assert_eq!(differing(|seen| change(seen, 0, "quoted-printable", "8bit")), [Kind::NewSignIn]);
    let unsubscribes =
        "List-Unsubscribe: <https://a.example/>\r\nList-Unsubscribe-Post: List-Unsubscribe=One-Click\r\nTo:";
    assert_eq!(differing(|seen| change(seen, 0, "To:", unsubscribes)), [Kind::NewSignIn]);
}

#[test]
fn what_a_scene_saw_otherwise_differs() {
    let noted = vec![(Kind::Announcement, "reached nobody".into())];
    let facts = Facts {
        people: Vec::new(),
        expected: Expected::default(),
        deliveries: Vec::new(),
        arrivals: Vec::new(),
        noted,
    };
    let report = MailReport::new(&facts);
    assert!(report.differs() && report.to_string().contains("reached nobody"), "{report}");
}
