//! The model as a harness of the laws.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::store::Row;
use super::{Defect, MarkEffect, ModelQueue};
use crate::ids::DeliveryId;
use crate::laws::{Harness, Look, Wish};
use crate::outcome::Status;

/// The model as a harness.
#[derive(Debug)]
pub struct Model(pub Arc<ModelQueue>);

impl Harness for Model {
    type Queue = ModelQueue;

    fn queue(&self) -> Arc<ModelQueue> {
        Arc::clone(&self.0)
    }

    async fn record(&self, wishes: Vec<Wish>) -> Vec<DeliveryId> {
        let (mut store, now) = self.0.store();
        let ids = wishes
            .into_iter()
            .map(|wish| {
                let (id, place) = (DeliveryId::from_uuid(self.0.next_id()), store.next_place);
                store.next_place += 1;
                let row = Row::new(id, place, wish, now);
                store.rows.insert(place, row);
                id
            })
            .collect();
        store.note(now);
        ids
    }

    async fn let_pass(&self, time: Duration) {
        self.0.store().0.passed += time;
    }

    async fn look(&self, delivery: DeliveryId) -> Option<Look> {
        let (mut store, _) = self.0.store();
        let row = store.find(delivery)?;
        Some(Look { status: row.status, attempts: row.attempt, last_error: row.last_error })
    }

    async fn retry(&self, delivery: DeliveryId) -> bool {
        let (mut store, now) = self.0.store();
        let defect = store.defect;
        let moved_to = store.next_place;
        let Some(row) = store.find(delivery) else { return false };
        let unordered = row.delivery.ordering_key.is_none();
        let allowed = row.status == Status::Failed || (row.status == Status::Cancelled && unordered);
        if allowed {
            (row.status, row.status_since, row.due) = (Status::Pending, now, now);
            row.attempts_at_retry = row.attempt;
            if defect == Some(Defect::RetryMovesToTheEnd) {
                let from = std::mem::replace(&mut row.place, moved_to);
                store.move_row(from, moved_to);
            }
        }
        store.note(now);
        allowed
    }

    async fn cancel(&self, delivery: DeliveryId) -> bool {
        let (mut store, now) = self.0.store();
        let defect = store.defect;
        let Some(row) = store.find(delivery) else { return false };
        let allowed = matches!(row.status, Status::Pending | Status::Failed);
        if allowed && defect != Some(Defect::CancelDropped) {
            (row.status, row.status_since) = (Status::Cancelled, now);
            let leased = row.token.is_some();
            if defect != Some(Defect::CancelKeepsClaim) {
                row.token = None;
            }
            let (due, channel) = (row.due, row.delivery.channel.clone());
            if let Some(key) = row.delivery.ordering_key.clone().filter(|_| leased) {
                let held = store.held_until.entry((channel, key)).or_default();
                *held = due.max(*held);
            }
        }
        store.note(now);
        allowed
    }

    fn effect(&self, fails: bool) -> MarkEffect {
        MarkEffect { marks: Arc::clone(&self.0.marks), fails }
    }

    async fn marks(&self) -> usize {
        self.0.marks.load(Ordering::SeqCst)
    }

    async fn set_reachable(&self, reachable: bool) {
        self.0.unreachable.store(!reachable, Ordering::SeqCst);
    }
}
