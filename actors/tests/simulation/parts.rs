//! The queue as one replica reaches it, and the receiver: both write down what they saw.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use postrider_actors::checker::{Answer, Receipt, Settlement, Worker};
use postrider_actors::model::MarkEffect;
use postrider_actors::{
    Attempted, AuditPolicy, ChannelName, ChannelPolicy, ClaimToken, CleanedUp, DeliveryId, Ended, FindingCount, Lease,
    Outcome, PendingCount, Queue, QueueError, Reason, Recorded, Retention, Search, Transport,
};

use crate::nemesis;
use crate::world::{Gap, LEASE, World, millis};

pub struct SimQueue {
    pub world: Arc<World>,
    pub replica: u32,
}

impl SimQueue {
    fn error(during: &'static str) -> QueueError {
        QueueError::Unreachable { during, source: "a fault of the simulation".into() }
    }

    /// The way there: a process that stands still asks nothing, and a store that is away does nothing.
    async fn there(&self, during: &'static str) -> Result<(), QueueError> {
        self.world.pause(8).await;
        self.thaw().await;
        if self.world.now() < self.world.lock().trouble.unreachable_until {
            return Err(Self::error(during));
        }
        Ok(())
    }

    /// The way back: it has happened, but the answer may be lost.
    async fn back<T>(&self, during: &'static str, answer: T) -> Result<T, QueueError> {
        self.world.pause(8).await;
        self.thaw().await;
        let deaf = self.world.now() < self.world.lock().trouble.deaf_until;
        if deaf && self.world.below(2) == 0 { Err(Self::error(during)) } else { Ok(answer) }
    }

    async fn thaw(&self) {
        let until = self.world.lock().trouble.frozen.get(&self.replica).copied().unwrap_or_default();
        tokio::time::sleep(until.saturating_sub(self.world.now())).await;
    }
}

impl Queue for SimQueue {
    type Effect = MarkEffect;

    async fn claim(
        &self,
        channel: &ChannelName,
        slots: NonZeroUsize,
        lease: Duration,
        search: Search,
    ) -> Result<Vec<Lease>, QueueError> {
        self.there("claiming").await?;
        let leases = self.world.queue.claim(channel, slots, lease, search).await?;
        if !leases.is_empty() {
            nemesis::reached(&self.world, self.replica, Gap::InClaim);
        }
        let leases = self.back("claiming", leases).await?;
        if !leases.is_empty() {
            nemesis::reached(&self.world, self.replica, Gap::BeforeSend);
        }
        Ok(leases)
    }

    async fn record(&self, channel: &ChannelPolicy, ended: &[Ended<MarkEffect>]) -> Result<Recorded, QueueError> {
        nemesis::reached(&self.world, self.replica, Gap::BeforeRecord);
        self.there("recording outcomes").await?;
        let recorded = self.world.queue.record(channel, ended).await?;
        nemesis::reached(&self.world, self.replica, Gap::InRecord);
        let recorded = self.back("recording outcomes", recorded).await?;
        for (one, settled) in ended.iter().zip(&recorded.settled) {
            let settlement = Settlement { delivery: one.delivery, token: one.token, settled: *settled };
            self.world.lock().history.settlements.push(settlement);
        }
        nemesis::reached(&self.world, self.replica, Gap::AfterRecord);
        Ok(recorded)
    }

    async fn give_back(&self, channel: &ChannelName, leases: &[(DeliveryId, ClaimToken)]) -> Result<(), QueueError> {
        self.there("giving leases back").await?;
        self.world.queue.give_back(channel, leases).await?;
        self.back("giving leases back", ()).await
    }

    async fn clean_up(&self, retention: &Retention) -> Result<CleanedUp, QueueError> {
        self.there("cleaning up").await?;
        let cleaned = self.world.queue.clean_up(retention).await?;
        self.back("cleaning up", cleaned).await
    }

    async fn count_pending(&self, channels: &[ChannelName]) -> Result<Vec<PendingCount>, QueueError> {
        self.there("counting").await?;
        let counts = self.world.queue.count_pending(channels).await?;
        self.back("counting", counts).await
    }

    async fn audit(&self, policy: &AuditPolicy) -> Result<Vec<FindingCount>, QueueError> {
        self.there("auditing").await?;
        let found = self.world.queue.audit(policy).await?;
        self.back("auditing", found).await
    }
}

pub struct Receiver {
    pub world: Arc<World>,
    pub worker: Worker,
}

impl Receiver {
    /// What is on the wire arrives, whatever has become of who sent it.
    fn arrives(&self, lease: &Lease, answer: Answer, late: bool) {
        let (delivery, attempt) = (lease.delivery.id, lease.attempt);
        let at = self.world.now();
        let mut shared = self.world.lock();
        // The limit that no queue can lift: a first arrival from a process that stood still past its lease.
        let known = shared.history.receipts.iter().any(|receipt| receipt.delivery == delivery);
        if !late || known {
            let content = u64::from_be_bytes(delivery.as_uuid().as_bytes()[8..].try_into().unwrap());
            shared.history.receipts.push(Receipt { delivery, attempt, worker: self.worker, content, at, answer });
        }
    }

    /// The store's clock leapt ahead since: that ends a lease that no worker knows to have ended, and what it outran is
    /// lost on the way.
    fn outrun(&self, began: Duration) -> bool {
        self.world.lock().trouble.leapt.is_some_and(|leapt| leapt + millis(100) >= began)
    }

    fn frozen_for(&self) -> Duration {
        let until = self.world.lock().trouble.frozen.get(&self.worker.replica).copied().unwrap_or_default();
        until.saturating_sub(self.world.now())
    }
}

#[async_trait]
impl Transport<MarkEffect> for Receiver {
    async fn attempt(&self, lease: &Lease) -> Attempted<MarkEffect> {
        let world = &self.world;
        let began = world.now();
        nemesis::reached(world, self.worker.replica, Gap::MidSend);
        let act = world.below(100);
        if act < 4 {
            return Outcome::Deferred { reason: Reason::UnreadablePayload, wait: millis(100 + world.below(3_000)) }
                .into();
        }
        world.pause(150).await;
        let stalled = self.frozen_for();
        if !stalled.is_zero() {
            // Its message leaves when it moves again; the attempt itself is cut off by its time.
            let stalled_sender = Receiver { world: Arc::clone(world), worker: self.worker };
            let stalled_lease = lease.clone();
            tokio::spawn(async move {
                tokio::time::sleep(stalled).await;
                // An attempt begins in the first half of its lease at the latest.
                let late = stalled > LEASE / 2 || stalled_sender.outrun(began);
                stalled_sender.arrives(&stalled_lease, Answer::Nothing, late);
            });
            return std::future::pending().await;
        }
        let receiver_is_ill = world.now() < world.lock().trouble.receiver_until;
        let over = world.lock().trouble.over;
        let act = if over {
            99
        } else if receiver_is_ill {
            act % 50
        } else {
            act
        };
        let answer = match act {
            0..=13 => Answer::Nothing,
            14..=24 => Answer::Retry,
            25..=30 => Answer::Refuse,
            _ => Answer::Success,
        };
        if self.outrun(began) {
            return std::future::pending().await;
        }
        self.arrives(lease, answer, false);
        match act {
            // Dropped: a connection that breaks, an answer that never comes, a transport that panics on it.
            0..=4 => return Outcome::retry(Reason::Connection).into(),
            5..=10 => std::future::pending().await,
            11..=13 => std::panic::resume_unwind(Box::new("a transport that panics")),
            _ => {}
        }
        world.pause(50).await;
        tokio::time::sleep(self.frozen_for()).await;
        nemesis::reached(world, self.worker.replica, Gap::AfterAnswer);
        match answer {
            Answer::Success => Outcome::Succeeded.into(),
            Answer::Refuse => Outcome::failed(Reason::Protocol).into(),
            Answer::Retry | Answer::Nothing => Outcome::retry(Reason::Connection).into(),
        }
    }
}
