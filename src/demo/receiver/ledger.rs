//! What the receivers note down.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::Notify;
use uuid::Uuid;

use super::behaviour::Answer;

/// A logout token that its receiver found good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::demo) struct Receipt {
    /// Which receiver: its position in the cast.
    pub(in crate::demo) role: usize,
    pub(in crate::demo) jti: Uuid,
    pub(in crate::demo) sid: Uuid,
    /// How often this jti has come by now, from 1.
    pub(in crate::demo) seen: u32,
    pub(in crate::demo) answer: Answer,
    pub(in crate::demo) at: Instant,
}

#[derive(Debug, Default)]
struct Entries {
    receipts: Vec<Receipt>,
    connections: Vec<usize>,
    complaints: Vec<(usize, &'static str)>,
}

/// Shared by all receivers. Locked for moments only, never across an await.
#[derive(Debug, Clone, Default)]
pub(in crate::demo) struct Ledger(Arc<Mutex<Entries>>, Arc<Notify>);

impl Ledger {
    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a good token; `answer` decides by how often its jti has come.
    pub(super) fn receive(&self, role: usize, jti: Uuid, sid: Uuid, answer: impl FnOnce(u32) -> Answer) -> Answer {
        let mut entries = self.lock();
        let before = entries.receipts.iter().filter(|receipt| receipt.role == role && receipt.jti == jti).count();
        let seen = u32::try_from(before).unwrap_or(u32::MAX).saturating_add(1);
        let answer = answer(seen);
        entries.receipts.push(Receipt { role, jti, sid, seen, answer, at: Instant::now() });
        drop(entries);
        self.1.notify_one();
        answer
    }

    /// Notes a request that was not good.
    pub(super) fn complain(&self, role: usize, complaint: &'static str) {
        self.lock().complaints.push((role, complaint));
        self.1.notify_one();
    }

    /// Notes that a connection was taken.
    pub(super) fn connected(&self, role: usize) {
        self.lock().connections.push(role);
    }

    /// Waits until something is noted that nobody has waited for yet.
    pub(in crate::demo) async fn changed(&self) {
        self.1.notified().await;
    }

    pub(in crate::demo) fn receipts(&self) -> Vec<Receipt> {
        self.lock().receipts.clone()
    }

    /// The receiver's position in the cast and what was wrong with the request.
    pub(in crate::demo) fn complaints(&self) -> Vec<(usize, &'static str)> {
        self.lock().complaints.clone()
    }

    /// Connections that this receiver took, whatever became of them.
    pub(in crate::demo) fn connections(&self, role: usize) -> usize {
        self.lock().connections.iter().filter(|taken| **taken == role).count()
    }
}
