//! What is known at the end, and where it is not what was expected.

use std::collections::HashMap;

use postrider_actors::Status;
use uuid::Uuid;

use super::super::mailbox::Received;
use super::deliveries::MailDelivery;
use super::expected::{Expected, ExpectedDelivery, Fate, Kind};
use super::people::Person;
use super::stage::DOMAIN;
use crate::identity::AccountId;

/// Everything that can be compared.
#[derive(Debug, Clone)]
pub(super) struct Facts {
    pub(super) people: Vec<Person>,
    pub(super) expected: Expected,
    pub(super) deliveries: Vec<MailDelivery>,
    pub(super) arrivals: Vec<Arrival>,
    /// What a scene saw otherwise than expected.
    pub(super) noted: Vec<(Kind, String)>,
}

/// A message in the mailbox, and the delivery that it is of.
#[derive(Debug, Clone)]
pub(super) struct Arrival {
    pub(super) letter: Received,
    pub(super) delivery: Option<Uuid>,
    pub(super) kind: Kind,
}

impl Arrival {
    /// By the Message-ID; what is no delivery's is of another kind.
    pub(super) fn of(letter: Received, deliveries: &[MailDelivery]) -> Self {
        let id = delivery_of(&letter);
        let delivery = deliveries.iter().find(|delivery| Some(delivery.id) == id);
        Self {
            letter,
            delivery: delivery.map(|found| found.id),
            kind: delivery.map_or(Kind::Other, |found| found.kind),
        }
    }
}

/// A delivery and its end.
struct Ended<'a> {
    delivery: &'a MailDelivery,
    fate: Fate,
}

impl Facts {
    /// Messages of this kind in the mailbox.
    pub(super) fn arrived(&self, kind: Kind) -> impl Iterator<Item = &Arrival> {
        self.arrivals.iter().filter(move |arrival| arrival.kind == kind)
    }

    /// Everything about this kind that is not as expected; empty: all is.
    pub(super) fn differences(&self, kind: Kind) -> Vec<String> {
        let mut missing: Vec<&ExpectedDelivery> =
            self.expected.deliveries.iter().filter(|expected| expected.kind == kind).collect();
        let mut differences: Vec<String> =
            self.noted.iter().filter(|(of, _)| *of == kind).map(|(_, difference)| difference.clone()).collect();
        for Ended { delivery, fate } in self.ended(kind) {
            let is_met = |expected: &&ExpectedDelivery| {
                expected.account == delivery.account && expected.fate == fate && delivery.attempts >= expected.attempts
            };
            match missing.iter().position(is_met) {
                Some(met) => drop(missing.swap_remove(met)),
                None => {
                    let (name, attempts) = (self.name(delivery.account), delivery.attempts);
                    differences.push(format!("{name}: {fate} in {attempts}, which was not expected"));
                }
            }
        }
        for expected in missing {
            let (name, fate, attempts) = (self.name(expected.account), &expected.fate, expected.attempts);
            differences.push(format!("{name}: {fate} in {attempts}+, which is missing"));
        }
        for Arrival { letter, .. } in self.arrived(kind) {
            differences.extend(fault(kind, letter).map(|fault| format!("for {}: {fault}", letter.to)));
        }
        differences
    }

    fn ended(&self, kind: Kind) -> Vec<Ended<'_>> {
        let mut arrivals: HashMap<Uuid, Vec<&str>> = HashMap::new();
        for Arrival { letter, delivery, .. } in self.arrived(kind) {
            arrivals.entry(delivery.unwrap_or_default()).or_default().push(&letter.to);
        }
        let of_kind = self.deliveries.iter().filter(|delivery| delivery.kind == kind);
        let ended = of_kind.map(|delivery| {
            let arrived = arrivals.get(&delivery.id).map_or(&[][..], Vec::as_slice);
            let reason = delivery.last_error.as_deref().unwrap_or("no reason");
            let fate = match (delivery.status, arrived) {
                (Status::Succeeded, [address]) => Fate::Arrived((*address).to_owned()),
                (Status::Succeeded, []) => Fate::Unsent,
                (Status::Failed, []) => Fate::Failed(reason.to_owned()),
                (status, arrived) => Fate::Otherwise(format!("{status}, came {} times", arrived.len())),
            };
            Ended { delivery, fate }
        });
        ended.collect()
    }

    fn name(&self, account: AccountId) -> &str {
        self.people.iter().find(|person| person.account == account).map_or("somebody", |person| &person.name)
    }
}

/// The delivery that a message is of: the left side of its Message-ID.
fn delivery_of(received: &Received) -> Option<Uuid> {
    let id = received.field("Message-ID")?;
    let (delivery, domain) = id.strip_prefix('<')?.strip_suffix('>')?.split_once('@')?;
    (domain == DOMAIN).then_some(delivery)?.parse().ok()
}

/// What a message lacks, or holds too much.
fn fault(kind: Kind, received: &Received) -> Option<&'static str> {
    let Some(text) = received.plain_text() else { return Some("no plain text that can be read") };
    let one_click = received.field("List-Unsubscribe-Post").as_deref() == Some("List-Unsubscribe=One-Click");
    let unsubscribes = received.field("List-Unsubscribe").is_some() && one_click;
    if kind == Kind::Other {
        return Some("a message that is no delivery's");
    }
    if received.field("To") != Some(format!("<{}>", received.to)) {
        return Some("To is not the envelope's recipient");
    }
    if unsubscribes != kind.is_subscribed_to() {
        return Some(if unsubscribes { "a one-click unsubscribe link" } else { "no one-click unsubscribe link" });
    }
    (kind == Kind::AccountRecovered && !text.contains("/undo")).then_some("no link to undo the recovery")
}
