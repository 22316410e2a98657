//! A model of the queue in memory, on tokio's clock: what the laws say, as plainly as it can be said.

mod defect;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use uuid::Uuid;

pub use self::defect::Defect;
use crate::checker::{RowState, Transition};
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

impl Row {
    fn new(id: DeliveryId, place: u64, wish: Wish, now: Duration) -> Self {
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
            last_error: None,
        }
    }
}

#[derive(Debug, Default)]
struct Store {
    rows: BTreeMap<u64, Row>,
    next_place: u64,
    /// Time beyond what tokio's clock has seen pass.
    passed: Duration,
    held_until: HashMap<(ChannelName, String), Duration>,
    /// What every row went through, and how each stood when that was last written.
    journal: Vec<Transition>,
    journalled: BTreeMap<u64, (DeliveryId, RowState)>,
    /// Rows that a defect keeps from ever becoming the head of their key.
    never_woken: BTreeSet<u64>,
    defect: Option<Defect>,
}

impl Store {
    fn find(&mut self, id: DeliveryId) -> Option<&mut Row> {
        self.rows.values_mut().find(|row| row.delivery.id == id)
    }

    /// A row waits while another of its key before it is unfinished, or while its key is held.
    fn waits(&self, row: &Row, now: Duration) -> bool {
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

    fn may_be_claimed(&self, row: &Row, now: Duration) -> bool {
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

    fn move_row(&mut self, from: u64, to: u64) {
        self.next_place = to + 1;
        let (row, journalled) = (self.rows.remove(&from), self.journalled.remove(&from));
        self.rows.extend(row.map(|row| (to, row)));
        self.journalled.extend(journalled.map(|row| (to, row)));
    }

    /// Writes down what has changed in the rows since it was last called.
    fn note(&mut self, at: Duration) {
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
    ) -> Result<Vec<Lease>, QueueError> {
        self.reach("claiming").await?;
        let (mut store, now) = self.store();
        let defect = store.defect;
        let mut due: Vec<(Duration, u64)> = store
            .rows
            .values()
            .filter(|row| row.delivery.channel == *channel && store.may_be_claimed(row, now))
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
            let doublings = if row.token.is_some() { (row.attempt - row.attempts_at_retry).min(6) } else { 0 };
            let time = (lease * (1 << doublings)).min(LONGEST_LEASE.max(lease));
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
