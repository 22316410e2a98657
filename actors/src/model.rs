//! A model of the queue in memory, on tokio's clock: what the laws say, as plainly as it can be said.

mod defect;
mod harness;
mod store;

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use uuid::Uuid;

pub use self::defect::Defect;
pub use self::harness::Model;
use self::store::{Row, Store};
use crate::audit::{AuditPolicy, FindingCount, FindingKind};
use crate::checker::Transition;
use crate::ids::{ChannelName, ClaimToken, DeliveryId};
use crate::laws::Wish;
use crate::outcome::{Reason, Settled, Status, Verdict};
use crate::ports::{
    ChannelPolicy, CleanedUp, Ended, Lease, PendingCount, Queue, QueueError, Recorded, Retention, Search,
};

const LONGEST_LEASE: Duration = Duration::from_secs(3600);

/// What committed effects have done to the model's world.
#[derive(Debug, Clone)]
pub struct MarkEffect {
    marks: Arc<AtomicUsize>,
    fails: bool,
}

/// The model queue, which is its own harness.
#[derive(Debug)]
pub struct ModelQueue {
    began: Instant,
    store: Mutex<Store>,
    marks: Arc<AtomicUsize>,
    unreachable: AtomicBool,
    calls: AtomicUsize,
    /// Ids and tokens are numbers in turn, so that a run can be repeated.
    ids: AtomicU64,
}

impl ModelQueue {
    /// An empty queue.
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            began: Instant::now(),
            store: Mutex::default(),
            marks: Arc::default(),
            unreachable: AtomicBool::new(false),
            calls: AtomicUsize::new(0),
            ids: AtomicU64::new(1),
        })
    }

    /// An empty queue with one deliberate defect.
    pub fn broken(defect: Defect) -> Arc<Self> {
        let queue = Self::new();
        queue.store().0.defect = Some(defect);
        queue
    }

    /// What every row went through so far.
    pub fn journal(&self) -> Vec<Transition> {
        self.store().0.journal.clone()
    }

    /// The queue's clock.
    pub fn now(&self) -> Duration {
        self.store().1
    }

    /// Sets the queue's clock back, to its beginning at most.
    pub fn set_back(&self, time: Duration) {
        let (mut store, _) = self.store();
        store.passed = store.passed.saturating_sub(time);
    }

    /// Deliveries that can still be claimed, now or later, without an operator.
    pub fn undrained(&self) -> usize {
        let (store, _) = self.store();
        let behind_failure = |row: &Row| {
            row.delivery.ordering_key.is_some()
                && store.rows.values().any(|other| {
                    other.status == Status::Failed
                        && other.place < row.place
                        && other.delivery.channel == row.delivery.channel
                        && other.delivery.ordering_key == row.delivery.ordering_key
                })
        };
        store.rows.values().filter(|row| row.status == Status::Pending && !behind_failure(row)).count()
    }

    /// Begins a host's transaction: an id for the delivery, and the place that a plain sequence would give it.
    pub fn begin(&self) -> (DeliveryId, u64) {
        let mut store = self.store().0;
        let drawn = store.next_place;
        store.next_place += 1;
        (DeliveryId::from_uuid(self.next_id()), drawn)
    }

    /// Commits a host's transaction, or rolls it back. Its place in the key is taken here, under the lock.
    pub fn finish(&self, id: DeliveryId, drawn: u64, wish: Wish, commits: bool) {
        let (mut store, now) = self.store();
        if !commits && store.defect != Some(Defect::RolledBackVisible) {
            return;
        }
        if commits && store.defect == Some(Defect::CommitLost) && drawn % 7 == 3 {
            return;
        }
        let place = if store.defect == Some(Defect::SequenceOrder) { drawn } else { store.next_place };
        store.next_place += 1;
        store.rows.insert(place, Row::new(id, place, wish, now));
        store.note(now);
    }

    fn next_id(&self) -> Uuid {
        Uuid::from_u128(u128::from(self.ids.fetch_add(1, Ordering::SeqCst)))
    }

    fn store(&self) -> (MutexGuard<'_, Store>, Duration) {
        let store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.began.elapsed() + store.passed;
        (store, now)
    }

    /// Calls so far, failed ones too.
    pub fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }

    /// A call takes a moment, and fails while the queue is unreachable.
    async fn reach(&self, during: &'static str) -> Result<(), QueueError> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_millis(1)).await;
        if self.unreachable.load(Ordering::SeqCst) {
            return Err(QueueError::Unreachable { during, source: "the model is unreachable".into() });
        }
        Ok(())
    }
}

impl Queue for ModelQueue {
    type Effect = MarkEffect;

    async fn claim(
        &self,
        channel: &ChannelName,
        slots: NonZeroUsize,
        lease: Duration,
        search: Search,
    ) -> Result<Vec<Lease>, QueueError> {
        self.reach("claiming").await?;
        let (mut store, now) = self.store();
        let defect = store.defect;
        let mut due: Vec<(Duration, u64)> = store
            .rows
            .values()
            .filter(|row| row.delivery.channel == *channel && store.may_be_claimed(row, now))
            // As the port allows: a search ahead misses every lease that ran out.
            .filter(|row| search == Search::All || row.token.is_none())
            .map(|row| (row.due, row.place))
            .collect();
        due.sort_unstable();
        due.truncate(slots.get());
        let mut leases = Vec::new();
        for (_, place) in due {
            let Some(row) = store.rows.get_mut(&place) else { continue };
            let token = match row.token {
                Some(held) if defect == Some(Defect::TokenKept) => held,
                _ => ClaimToken::from_uuid(self.next_id()),
            };
            // Claimed over a lease that ran out, the next one is longer.
            row.lapsed_leases = if row.token.is_some() { (row.lapsed_leases + 1).min(6) } else { 0 };
            let time = (lease * (1 << row.lapsed_leases)).min(LONGEST_LEASE.max(lease));
            let counted = u32::from(defect != Some(Defect::AttemptNotCounted));
            (row.token, row.due, row.attempt) = (Some(token), now + time, row.attempt + counted);
            if defect == Some(Defect::LeaseByAnothersClock) {
                row.due = self.began.elapsed() + time;
            }
            leases.push(Lease {
                delivery: row.delivery.clone(),
                token,
                attempt: row.attempt,
                attempt_since_retry: row.attempt - row.attempts_at_retry,
                age: now.saturating_sub(row.status_since),
            });
        }
        if !leases.is_empty() {
            store.note(now);
        }
        Ok(leases)
    }

    async fn record(&self, channel: &ChannelPolicy, ended: &[Ended<MarkEffect>]) -> Result<Recorded, QueueError> {
        self.reach("recording outcomes").await?;
        let (mut store, now) = self.store();
        let mut recorded = Recorded::default();
        let defect = store.defect;
        for (index, one) in ended.iter().enumerate() {
            let holds = |row: &Row| match defect {
                Some(Defect::RecordWithoutToken) => row.status == Status::Pending,
                Some(Defect::LateOutcomeOverwrites) => row.token == Some(one.token) || row.token.is_none(),
                _ => row.token == Some(one.token),
            };
            let Some(row) = store.find(one.delivery).filter(|row| holds(row)) else {
                recorded.settled.push(Settled::LeaseLost);
                continue;
            };
            if let Some(effect) = &one.effect {
                if effect.fails {
                    recorded.settled.push(Settled::EffectFailed);
                    continue;
                }
                effect.marks.fetch_add(1, Ordering::SeqCst);
            }
            if defect == Some(Defect::RecordedInNameOnly) && row.attempt > 1 {
                recorded.settled.push(Settled::Recorded(Status::Succeeded));
                continue;
            }
            row.token = None;
            let ends_at = row.status_since + channel.max_age;
            let verdict = match defect {
                Some(Defect::FirstOutcomeForAll) if index > 0 => ended[0].verdict,
                Some(Defect::RetryEndsIt) if !matches!(one.verdict, Verdict::Defer { .. }) => Verdict::Succeeded,
                _ => one.verdict,
            };
            let (status, due, reason) = match verdict {
                Verdict::Succeeded => (Status::Succeeded, row.due, None),
                Verdict::Failed { reason } => (Status::Failed, row.due, Some(reason)),
                Verdict::Retry { reason, wait } if now.saturating_add(wait) > ends_at => {
                    (Status::Failed, row.due, Some(reason))
                }
                Verdict::Retry { reason, wait } => (Status::Pending, now + wait, Some(reason)),
                Verdict::Defer { reason, wait } => {
                    row.attempt = row.attempt.saturating_sub(1);
                    (Status::Pending, now.saturating_add(wait).min(ends_at), Some(reason))
                }
            };
            (row.status, row.due, row.last_error) = (status, due, reason);
            if status != Status::Pending {
                row.status_since = now;
            }
            let ended_key = row.delivery.ordering_key.clone().filter(|_| status == Status::Succeeded);
            recorded.settled.push(Settled::Recorded(status));
            let of_key = |row: &&Row| row.delivery.ordering_key == ended_key && row.status == Status::Pending;
            if let Some(next) = store.rows.values().find(of_key).filter(|_| ended_key.is_some()).map(|next| next.place)
            {
                recorded.released += 1;
                if defect == Some(Defect::NextNotWoken) {
                    store.never_woken.insert(next);
                }
            }
        }
        store.note(now);
        Ok(recorded)
    }

    async fn give_back(&self, _channel: &ChannelName, leases: &[(DeliveryId, ClaimToken)]) -> Result<(), QueueError> {
        self.reach("giving leases back").await?;
        let (mut store, now) = self.store();
        for (id, token) in leases {
            if store.defect == Some(Defect::GivenBackDropped) {
                store.rows.retain(|_, row| row.delivery.id != *id);
            }
            if let Some(row) = store.find(*id).filter(|row| row.token == Some(*token)) {
                (row.token, row.due, row.attempt) = (None, now, row.attempt.saturating_sub(1));
            }
        }
        store.note(now);
        Ok(())
    }

    async fn clean_up(&self, retention: &Retention) -> Result<CleanedUp, QueueError> {
        self.reach("cleaning up").await?;
        let (mut store, now) = self.store();
        let before = store.rows.len();
        let mut abandoned = Vec::new();
        store.rows.retain(|_, row| {
            let age = now.saturating_sub(row.status_since);
            let old = match row.status {
                Status::Pending => false,
                Status::Succeeded => age > retention.succeeded,
                Status::Failed | Status::Cancelled => age > retention.failed,
            };
            if old && row.status == Status::Failed {
                abandoned.extend(row.delivery.ordering_key.clone().map(|key| (row.delivery.channel.clone(), key)));
            }
            !old
        });
        let mut cleaned = CleanedUp { abandoned_keys: abandoned.len() as u64, ..CleanedUp::default() };
        cleaned.deleted = (before - store.rows.len()) as u64 - cleaned.abandoned_keys;
        for row in store.rows.values_mut().filter(|row| row.status == Status::Pending) {
            let key = row.delivery.ordering_key.clone().map(|key| (row.delivery.channel.clone(), key));
            if key.is_some_and(|key| abandoned.contains(&key)) {
                (row.status, row.status_since, row.last_error) = (Status::Cancelled, now, Some(Reason::Abandoned));
                cleaned.cancelled += 1;
            }
        }
        if cleaned != CleanedUp::default() {
            store.note(now);
        }
        Ok(cleaned)
    }

    async fn count_pending(&self, channels: &[ChannelName]) -> Result<Vec<PendingCount>, QueueError> {
        self.reach("counting").await?;
        let (store, now) = self.store();
        Ok(channels
            .iter()
            .map(|channel| {
                let ages: Vec<Duration> = store
                    .rows
                    .values()
                    .filter(|row| row.delivery.channel == *channel && row.status == Status::Pending)
                    .map(|row| now.saturating_sub(row.status_since))
                    .collect();
                let oldest_age = ages.iter().max().copied().unwrap_or_default();
                PendingCount { channel: channel.clone(), pending: ages.len() as u64, oldest_age }
            })
            .collect())
    }

    /// It keeps its other promises by construction.
    async fn audit(&self, policy: &AuditPolicy) -> Result<Vec<FindingCount>, QueueError> {
        self.reach("auditing").await?;
        let (store, now) = self.store();
        let mut found: BTreeMap<(FindingKind, ChannelName), u64> = BTreeMap::new();
        for row in store.rows.values().filter(|row| row.status == Status::Pending && !store.waits(row, now)) {
            let kind = if row.token.is_some() { FindingKind::LeaseExpired } else { FindingKind::Overdue };
            if row.due + policy.older_than < now {
                *found.entry((kind, row.delivery.channel.clone())).or_default() += 1;
            }
        }
        let count = |((kind, channel), found)| FindingCount { kind, channel: Some(channel), found };
        Ok(found.into_iter().map(count).collect())
    }
}
