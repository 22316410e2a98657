//! What is known at the end, and whether one receiver's part of it is what was expected.

use std::collections::{BTreeSet, HashMap};
use std::time::Instant;

use postrider_actors::{Reason, Status};
use uuid::Uuid;

use super::cast::{Expectation, Met, Role};
use super::database::Delivery;
use super::domain::Session;
use super::plan::Fate;
use super::receiver::Receipt;

/// Everything that can be compared.
#[derive(Debug, Clone)]
pub(super) struct Facts<'a> {
    pub(super) cast: &'a [Role],
    pub(super) sessions: Vec<&'a Session>,
    pub(super) deliveries: Vec<Delivery>,
    pub(super) receipts: Vec<Receipt>,
    /// Connections that each receiver of the cast took.
    pub(super) connections: Vec<usize>,
    /// Requests that a receiver did not find good.
    pub(super) complaints: Vec<(usize, &'static str)>,
}

impl Facts<'_> {
    pub(super) fn deliveries_of(&self, role: usize) -> impl Iterator<Item = &Delivery> {
        self.deliveries.iter().filter(move |delivery| delivery.role == role)
    }

    pub(super) fn receipts_of(&self, role: usize) -> impl Iterator<Item = &Receipt> {
        self.receipts.iter().filter(move |receipt| receipt.role == role)
    }

    /// The sessions of this fate.
    pub(super) fn sids(&self, fate: Fate) -> BTreeSet<Uuid> {
        self.sessions.iter().filter(|session| session.fate == fate).map(|session| session.id.0).collect()
    }

    /// The ended sessions that a receiver must hear of.
    fn sids_to_tell(&self, role: usize) -> BTreeSet<Uuid> {
        let told = |session: &&&Session| session.fate == Fate::Ended && session.roles.contains(&role);
        self.sessions.iter().filter(told).map(|session| session.id.0).collect()
    }

    /// Everything about a receiver that is not as expected; empty: all is.
    pub(super) fn differences(&self, position: usize, role: &Role) -> Vec<String> {
        let mut differences = Vec::new();
        let expected = role.expected;
        let to_tell = self.sids_to_tell(position);
        let recorded: Vec<Option<Uuid>> = self.deliveries_of(position).map(|delivery| delivery.sid).collect();
        if recorded.iter().flatten().copied().collect::<BTreeSet<_>>() != to_tell || recorded.len() != to_tell.len() {
            differences.push(format!("{} deliveries for {} ended sessions", recorded.len(), to_tell.len()));
        }
        let otherwise = self.deliveries_of(position).filter(|delivery| !expected.is_met_by(delivery));
        let ended_otherwise = endings(otherwise);
        if !ended_otherwise.is_empty() {
            differences.push(format!("not {expected}: {ended_otherwise}"));
        }
        differences.extend(self.receipt_differences(position, role));
        differences
    }

    fn receipt_differences(&self, position: usize, role: &Role) -> Vec<String> {
        let mut differences = Vec::new();
        let mut times: HashMap<Uuid, Vec<Instant>> = HashMap::new();
        for receipt in self.receipts_of(position) {
            times.entry(receipt.jti).or_default().push(receipt.at);
        }
        let (met, connections) = (role.expected.met, self.connections.get(position).copied().unwrap_or(0));
        for delivery in self.deliveries_of(position) {
            let came = times.remove(&delivery.id).unwrap_or_default();
            let should = if met == Met::EveryAttempt { usize::try_from(delivery.attempts).unwrap_or(0) } else { 0 };
            if came.len() != should {
                differences.push(format!("{}: came {} times, not {should}", delivery.id, came.len()));
            }
            let apart = came.windows(2).map(|pair| pair[1].saturating_duration_since(pair[0])).min();
            if let Some(apart) = apart.filter(|apart| *apart < role.expected.apart) {
                let (apart, least) = (apart.as_secs_f64(), role.expected.apart.as_secs_f64());
                differences.push(format!("{}: came again after {apart:.1} s, not {least:.1} s", delivery.id));
            }
        }
        if !times.is_empty() {
            differences.push(format!("{} tokens whose jti is no delivery's", times.len()));
        }
        if (met == Met::NoConnection) != (connections == 0) {
            differences.push(format!("{connections} connections"));
        }
        for (_, complaint) in self.complaints.iter().filter(|(complaining, _)| *complaining == position) {
            differences.push(format!("a request was refused: {complaint}"));
        }
        differences
    }
}

impl Expectation {
    /// Whether a delivery came to this end.
    pub(super) fn is_met_by(&self, delivery: &Delivery) -> bool {
        delivery.status == self.status
            && delivery.last_error == self.reason.map(|reason| reason.to_string())
            && self.attempts.include(delivery.attempts)
    }
}

/// In the words of the table: `succeeded`, `failed: 302`, `pending: tls`; a failure without an attempt to connect is
/// `failed unsent`.
pub(super) fn ending(status: Status, reason: Option<&str>) -> String {
    let refused = Reason::RefusedDestination.to_string();
    match reason {
        Some(reason) if status == Status::Failed && reason == refused => "failed unsent".into(),
        Some(reason) if status != Status::Succeeded => format!("{status}: {reason}"),
        _ => status.to_string(),
    }
}

/// Every ending that deliveries came to, with the attempts it took.
pub(super) fn endings<'a>(deliveries: impl Iterator<Item = &'a Delivery>) -> String {
    let mut kinds: Vec<(String, u32, u32, usize)> = Vec::new();
    for delivery in deliveries {
        let (kind, attempts) = (ending(delivery.status, delivery.last_error.as_deref()), delivery.attempts);
        match kinds.iter_mut().find(|(known, ..)| *known == kind) {
            Some((_, least, most, count)) => {
                (*least, *most, *count) = ((*least).min(attempts), (*most).max(attempts), *count + 1);
            }
            None => kinds.push((kind, attempts, attempts, 1)),
        }
    }
    let several = kinds.len() > 1;
    let words = kinds.into_iter().map(|(kind, least, most, count)| {
        let count = if several { format!("{count} ") } else { String::new() };
        let attempts = if least == most { least.to_string() } else { format!("{least}-{most}") };
        format!("{count}{kind} in {attempts}")
    });
    words.collect::<Vec<_>>().join(", ")
}
