//! The two ports of the engine: [`Queue`], where the truth lives, and [`Transport`], which performs one attempt.

use std::error::Error;
use std::future::Future;
use std::num::NonZeroUsize;
use std::time::Duration;

use async_trait::async_trait;

use crate::audit::{AuditPolicy, FindingCount};
use crate::ids::{ChannelName, ClaimToken, DeliveryId};
use crate::outcome::{Attempted, Settled, Verdict};

/// What is sent: everything an attempt needs, copied into the row when it was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// The id that every attempt carries.
    pub id: DeliveryId,
    /// The channel that sends it.
    pub channel: ChannelName,
    /// Who it is for: the unit of fairness and holds.
    pub owner: String,
    /// What it is about, where newer deliveries can supersede older ones.
    pub subject: Option<String>,
    /// Deliveries that share it are sent one at a time, in commit order; none: unordered.
    pub ordering_key: Option<String>,
    /// Where it goes, in the channel's own form.
    pub destination: String,
    /// The channel's payload as JSON text.
    pub payload: String,
}

/// The right to send one delivery until the lease ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// What to send.
    pub delivery: Delivery,
    /// Proves, when the outcome is recorded, that nobody else has claimed it since.
    pub token: ClaimToken,
    /// Number of this attempt, from 1, over the whole life of the delivery.
    pub attempt: u32,
    /// Number of this attempt since creation or the last operator retry, from 1: what the backoff grows by.
    pub attempt_since_retry: u32,
    /// Time since creation or the last operator retry, by the queue's clock, when it was claimed.
    pub age: Duration,
}

/// One ended attempt, to be recorded.
#[derive(Debug, Clone, PartialEq)]
pub struct Ended<E> {
    /// Which delivery.
    pub delivery: DeliveryId,
    /// The token that the attempt ran under.
    pub token: ClaimToken,
    /// It has an ordering key, so its success releases the next of the key.
    pub ordered: bool,
    /// What to write.
    pub verdict: Verdict,
    /// Commits with it.
    pub effect: Option<E>,
}

/// A channel as the engine knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChannelPolicy {
    /// Its name.
    pub name: ChannelName,
    /// Past this age, counted from creation or the last operator retry, a delivery fails unsent.
    pub max_age: Duration,
}

/// What one recording came to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Recorded {
    /// One for each of the ended attempts, in their order.
    pub settled: Vec<Settled>,
    /// How many deliveries became claimable because the head of their key ended.
    pub released: usize,
}

/// What one pass of cleanup did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CleanedUp {
    /// Succeeded, failed and cancelled deliveries deleted by age.
    pub deleted: u64,
    /// Ordered keys abandoned: their failure deleted, those waiting behind it cancelled.
    pub abandoned_keys: u64,
    /// Deliveries cancelled by abandoning.
    pub cancelled: u64,
    /// Another pass would find more.
    pub more: bool,
}

/// How long finished deliveries are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// `succeeded` are deleted after this; 7 days by default.
    pub succeeded: Duration,
    /// `failed` and `cancelled` are deleted, and the keys of ordered failures abandoned, after this; 30 days by default.
    pub failed: Duration,
}

impl Default for Retention {
    fn default() -> Self {
        const DAY: u64 = 86_400;
        Self { succeeded: Duration::from_secs(7 * DAY), failed: Duration::from_secs(30 * DAY) }
    }
}

/// What waits in one channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingCount {
    /// Which channel.
    pub channel: ChannelName,
    /// Waiting or being attempted.
    pub pending: u64,
    /// Since the oldest of them was created or last retried; zero where none is pending.
    pub oldest_age: Duration,
}

/// The store did not do what it was asked to; nothing may be assumed of what it did.
#[derive(Debug, thiserror::Error)]
pub enum QueueError {
    /// No connection, no answer in time, or the connection broke.
    #[error("queue unreachable while {during}")]
    Unreachable {
        /// What was being done.
        during: &'static str,
        /// The driver's error; never shown to receivers, never stored.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// The store answered, and refused.
    #[error("queue refused while {during}")]
    Refused {
        /// What was being done.
        during: &'static str,
        /// The driver's error.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// No answer within the engine's deadline for a call.
    #[error("queue gave no answer in {deadline:?} while {during}")]
    TimedOut {
        /// What was being done.
        during: &'static str,
        /// The deadline.
        deadline: Duration,
    },
}

/// How far back a claim looks; the later one here finds what the earlier one does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Search {
    /// From where the channel's last claim came to: finds what has become ready since. May miss a lease that ran out, and
    /// what a transaction of some seconds committed.
    Ahead,
    /// Everything.
    All,
}

/// The store of deliveries. Every time in it is its own clock's: durations cross this port, instants do not.
///
/// Each method is cancel-safe in this sense: a call that is dropped may have happened or not, and leaves nothing held.
pub trait Queue: Send + Sync + 'static {
    /// A closure over the recording transaction.
    type Effect: Clone + Send + Sync + 'static;

    /// Claims up to `slots` of the channel's longest-due deliveries: a fresh token each, leased for `lease`, the
    /// attempt counted. One claimed over a lease that ran out is kept from others for longer, doubling with each lease
    /// in a row that runs out, up to an hour, so that a delivery that kills its worker every time backs off. Never two of one ordering key, never one that is held, and no row is locked but those returned.
    fn claim(
        &self,
        channel: &ChannelName,
        slots: NonZeroUsize,
        lease: Duration,
        search: Search,
    ) -> impl Future<Output = Result<Vec<Lease>, QueueError>> + Send;

    /// Records each of `ended` where its token still holds the row. All of those without an effect are one statement.
    fn record(
        &self,
        channel: &ChannelPolicy,
        ended: &[Ended<Self::Effect>],
    ) -> impl Future<Output = Result<Recorded, QueueError>> + Send;

    /// Gives back leases whose attempt never started: due at once, the attempt not counted.
    fn give_back(
        &self,
        channel: &ChannelName,
        leases: &[(DeliveryId, ClaimToken)],
    ) -> impl Future<Output = Result<(), QueueError>> + Send;

    /// One bounded pass over what is past its retention.
    fn clean_up(&self, retention: &Retention) -> impl Future<Output = Result<CleanedUp, QueueError>> + Send;

    /// Counts what waits, one entry for each of `channels`.
    fn count_pending(
        &self,
        channels: &[ChannelName],
    ) -> impl Future<Output = Result<Vec<PendingCount>, QueueError>> + Send;

    /// Looks for broken promises, reading no more than `policy` allows and locking nothing. Empty: none found.
    fn audit(&self, policy: &AuditPolicy) -> impl Future<Output = Result<Vec<FindingCount>, QueueError>> + Send;
}

/// Performs one attempt for a channel. The engine bounds it by the send timeout, drops it when its sender dies and
/// takes a panic for a retryable outcome, so an implementation needs no bound of its own but must be cancel-safe.
#[async_trait]
pub trait Transport<E>: Send + Sync + 'static {
    /// Attempts the delivery once: no retry within, nothing left running after it returns or is dropped.
    async fn attempt(&self, lease: &Lease) -> Attempted<E>;
}
