//! The rows of the model, what may be claimed of them, and the journal of what they went through.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use super::Defect;
use crate::checker::{RowState, Transition};
use crate::ids::{ChannelName, ClaimToken, DeliveryId};
use crate::laws::Wish;
use crate::outcome::{Reason, Status};
use crate::ports::Delivery;

#[derive(Debug, Clone)]
pub(super) struct Row {
    pub(super) delivery: Delivery,
    pub(super) place: u64,
    pub(super) status: Status,
    pub(super) status_since: Duration,
    pub(super) due: Duration,
    pub(super) token: Option<ClaimToken>,
    pub(super) attempt: u32,
    pub(super) attempts_at_retry: u32,
    pub(super) lapsed_leases: u32,
    pub(super) last_error: Option<Reason>,
}

impl Row {
    pub(super) fn new(id: DeliveryId, place: u64, wish: Wish, now: Duration) -> Self {
        let delivery = Delivery {
            id,
            channel: wish.channel,
            owner: "owner".into(),
            subject: None,
            ordering_key: wish.ordering_key,
            destination: "destination".into(),
            payload: "{}".into(),
        };
        Self {
            delivery,
            place,
            status: Status::Pending,
            status_since: now,
            due: now,
            token: None,
            attempt: 0,
            attempts_at_retry: 0,
            lapsed_leases: 0,
            last_error: None,
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Store {
    pub(super) rows: BTreeMap<u64, Row>,
    pub(super) next_place: u64,
    /// Time beyond what tokio's clock has seen pass.
    pub(super) passed: Duration,
    pub(super) held_until: HashMap<(ChannelName, String), Duration>,
    /// What every row went through, and how each stood when that was last written.
    pub(super) journal: Vec<Transition>,
    pub(super) journalled: BTreeMap<u64, (DeliveryId, RowState)>,
    /// Rows that a defect keeps from ever becoming the head of their key.
    pub(super) never_woken: BTreeSet<u64>,
    pub(super) defect: Option<Defect>,
}

impl Store {
    pub(super) fn find(&mut self, id: DeliveryId) -> Option<&mut Row> {
        self.rows.values_mut().find(|row| row.delivery.id == id)
    }

    /// A row waits while another of its key before it is unfinished, or while its key is held.
    pub(super) fn waits(&self, row: &Row, now: Duration) -> bool {
        let Some(key) = &row.delivery.ordering_key else { return false };
        let key = (row.delivery.channel.clone(), key.clone());
        let held = self.held_until.get(&key).is_some_and(|until| *until > now);
        (held && self.defect != Some(Defect::HeldKeyIgnored)) || self.behind_head(row)
    }

    fn behind_head(&self, row: &Row) -> bool {
        let Some(key) = &row.delivery.ordering_key else { return false };
        if self.defect == Some(Defect::ClaimPastHead) {
            return false;
        }
        let failed_holds = self.defect != Some(Defect::FailureReleasesKey);
        self.never_woken.contains(&row.place)
            || self.rows.values().any(|other| {
                other.delivery.channel == row.delivery.channel
                    && other.delivery.ordering_key.as_ref() == Some(key)
                    && other.place < row.place
                    && (other.status == Status::Pending || (other.status == Status::Failed && failed_holds))
            })
    }

    pub(super) fn may_be_claimed(&self, row: &Row, now: Duration) -> bool {
        let defect = self.defect;
        let due = match row.token {
            Some(_) if defect == Some(Defect::LapsedNeverReclaimed) => return false,
            Some(_) if defect == Some(Defect::ClaimBeforeLeaseEnds) => row.due <= now + Duration::from_secs(5),
            None if defect == Some(Defect::ClaimBeforeDue) => row.due <= now + Duration::from_secs(1),
            _ => row.due <= now,
        };
        let open = row.status == Status::Pending
            || (row.status == Status::Succeeded && defect == Some(Defect::SucceededClaimedAgain));
        open && due && !self.waits(row, now)
    }

    pub(super) fn move_row(&mut self, from: u64, to: u64) {
        self.next_place = to + 1;
        let (row, journalled) = (self.rows.remove(&from), self.journalled.remove(&from));
        self.rows.extend(row.map(|row| (to, row)));
        self.journalled.extend(journalled.map(|row| (to, row)));
    }

    /// Writes down what has changed in the rows since it was last called.
    pub(super) fn note(&mut self, at: Duration) {
        let gone: Vec<u64> = self.journalled.keys().filter(|place| !self.rows.contains_key(place)).copied().collect();
        for place in gone {
            if let Some((delivery, before)) = self.journalled.remove(&place) {
                self.journal.push(Transition { delivery, at, before: Some(before), after: None });
            }
        }
        for (place, row) in &self.rows {
            let (status, token, attempt, due) = (row.status, row.token, row.attempt, row.due);
            let claimable = status != Status::Pending || !self.behind_head(row);
            let (delivery, after) = (row.delivery.id, RowState { status, token, attempt, due, claimable });
            let before = self.journalled.insert(*place, (delivery, after)).map(|(_, before)| before);
            if before != Some(after) {
                self.journal.push(Transition { delivery, at, before, after: Some(after) });
            }
        }
    }
}
