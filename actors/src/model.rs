//! A model of the queue in memory, on tokio's clock: what the laws say, as plainly as it can be said.

use std::collections::{BTreeMap, HashMap};
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::audit::{AuditPolicy, FindingCount, FindingKind};
use crate::ids::{ChannelName, ClaimToken, DeliveryId};
use crate::laws::{Harness, Look, Wish};
use crate::outcome::{Reason, Settled, Status, Verdict};
use crate::ports::{
    ChannelPolicy, CleanedUp, Delivery, Ended, Lease, PendingCount, Queue, QueueError, Recorded, Retention,
};

const LONGEST_LEASE: Duration = Duration::from_secs(3600);

#[derive(Debug, Clone)]
struct Row {
    delivery: Delivery,
    place: u64,
    status: Status,
    status_since: Duration,
    due: Duration,
    token: Option<ClaimToken>,
    attempt: u32,
    attempts_at_retry: u32,
    last_error: Option<Reason>,
}

#[derive(Debug, Default)]
struct Store {
    rows: BTreeMap<u64, Row>,
    next_place: u64,
    /// Time beyond what tokio's clock has seen pass.
    passed: Duration,
    held_until: HashMap<(ChannelName, String), Duration>,
}

impl Store {
    fn find(&mut self, id: DeliveryId) -> Option<&mut Row> {
        self.rows.values_mut().find(|row| row.delivery.id == id)
    }

    /// A row waits while another of its key before it is unfinished, or while its key is held.
    fn waits(&self, row: &Row, now: Duration) -> bool {
        let Some(key) = &row.delivery.ordering_key else { return false };
        let channel = &row.delivery.channel;
        let held = self.held_until.get(&(channel.clone(), key.clone())).is_some_and(|until| *until > now);
        held || self.rows.values().any(|other| {
            other.delivery.channel == *channel
                && other.delivery.ordering_key.as_ref() == Some(key)
                && other.place < row.place
                && matches!(other.status, Status::Pending | Status::Failed)
        })
    }
}

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
        })
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
    ) -> Result<Vec<Lease>, QueueError> {
        self.reach("claiming").await?;
        let (mut store, now) = self.store();
        let mut due: Vec<(Duration, u64)> = store
            .rows
            .values()
            .filter(|row| row.delivery.channel == *channel && row.status == Status::Pending && row.due <= now)
            .filter(|row| !store.waits(row, now))
            .map(|row| (row.due, row.place))
            .collect();
        due.sort_unstable();
        due.truncate(slots.get());
        let mut leases = Vec::new();
        for (_, place) in due {
            let Some(row) = store.rows.get_mut(&place) else { continue };
            let token = ClaimToken::generate();
            // Claimed over a lease that ran out, the next one is longer.
            let doublings = if row.token.is_some() { (row.attempt - row.attempts_at_retry).min(6) } else { 0 };
            let time = (lease * (1 << doublings)).min(LONGEST_LEASE.max(lease));
            (row.token, row.due, row.attempt) = (Some(token), now + time, row.attempt + 1);
            leases.push(Lease {
                delivery: row.delivery.clone(),
                token,
                attempt: row.attempt,
                attempt_since_retry: row.attempt - row.attempts_at_retry,
                age: now - row.status_since,
            });
        }
        Ok(leases)
    }

    async fn record(&self, channel: &ChannelPolicy, ended: &[Ended<MarkEffect>]) -> Result<Recorded, QueueError> {
        self.reach("recording outcomes").await?;
        let (mut store, now) = self.store();
        let mut recorded = Recorded::default();
        for one in ended {
            let Some(row) = store.find(one.delivery).filter(|row| row.token == Some(one.token)) else {
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
            row.token = None;
            let ends_at = row.status_since + channel.max_age;
            let (status, due, reason) = match one.verdict {
                Verdict::Succeeded => (Status::Succeeded, row.due, None),
                Verdict::Failed { reason } => (Status::Failed, row.due, Some(reason)),
                Verdict::Retry { reason, wait } if now.saturating_add(wait) > ends_at => {
                    (Status::Failed, row.due, Some(reason))
                }
                Verdict::Retry { reason, wait } => (Status::Pending, now + wait, Some(reason)),
                Verdict::Defer { reason, wait } => {
                    row.attempt -= 1;
                    (Status::Pending, now.saturating_add(wait).min(ends_at), Some(reason))
                }
            };
            (row.status, row.due, row.last_error) = (status, due, reason);
            if status != Status::Pending {
                row.status_since = now;
            }
            let ended_key = row.delivery.ordering_key.clone().filter(|_| status == Status::Succeeded);
            recorded.settled.push(Settled::Recorded(status));
            let of_key = |row: &Row| row.delivery.ordering_key == ended_key && row.status == Status::Pending;
            if ended_key.is_some() && store.rows.values().any(of_key) {
                recorded.released += 1;
            }
        }
        Ok(recorded)
    }

    async fn give_back(&self, _channel: &ChannelName, leases: &[(DeliveryId, ClaimToken)]) -> Result<(), QueueError> {
        self.reach("giving leases back").await?;
        let (mut store, now) = self.store();
        for (id, token) in leases {
            if let Some(row) = store.find(*id).filter(|row| row.token == Some(*token)) {
                (row.token, row.due, row.attempt) = (None, now, row.attempt - 1);
            }
        }
        Ok(())
    }

    async fn clean_up(&self, retention: &Retention) -> Result<CleanedUp, QueueError> {
        self.reach("cleaning up").await?;
        let (mut store, now) = self.store();
        let before = store.rows.len();
        let mut abandoned = Vec::new();
        store.rows.retain(|_, row| {
            let age = now - row.status_since;
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
                    .map(|row| now - row.status_since)
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
        wishes
            .into_iter()
            .map(|wish| {
                let (id, place) = (DeliveryId::generate(), store.next_place);
                store.next_place += 1;
                let delivery = Delivery {
                    id,
                    channel: wish.channel,
                    owner: "owner".into(),
                    subject: None,
                    ordering_key: wish.ordering_key,
                    destination: "destination".into(),
                    payload: "{}".into(),
                };
                let row = Row {
                    delivery,
                    place,
                    status: Status::Pending,
                    status_since: now,
                    due: now,
                    token: None,
                    attempt: 0,
                    attempts_at_retry: 0,
                    last_error: None,
                };
                store.rows.insert(place, row);
                id
            })
            .collect()
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
        let Some(row) = store.find(delivery) else { return false };
        let unordered = row.delivery.ordering_key.is_none();
        let allowed = row.status == Status::Failed || (row.status == Status::Cancelled && unordered);
        if allowed {
            (row.status, row.status_since, row.due) = (Status::Pending, now, now);
            row.attempts_at_retry = row.attempt;
        }
        allowed
    }

    async fn cancel(&self, delivery: DeliveryId) -> bool {
        let (mut store, now) = self.0.store();
        let Some(row) = store.find(delivery) else { return false };
        let allowed = matches!(row.status, Status::Pending | Status::Failed);
        if allowed {
            (row.status, row.status_since) = (Status::Cancelled, now);
            let leased = row.token.take().is_some();
            let (due, channel) = (row.due, row.delivery.channel.clone());
            if let Some(key) = row.delivery.ordering_key.clone().filter(|_| leased) {
                let held = store.held_until.entry((channel, key)).or_default();
                *held = due.max(*held);
            }
        }
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
