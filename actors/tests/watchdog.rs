//! An actor that is stuck: real time, as its thread is.
#![allow(clippy::unwrap_used)]

mod loud;

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use postrider_actors::laws::{Harness, Wish, channel, channel_named, wishes};
use postrider_actors::model::{MarkEffect, Model, ModelQueue};
use postrider_actors::{
    ActorState, Attempted, AuditPolicy, ChannelName, ChannelPolicy, ChildId, ClaimToken, CleanedUp, DeliveryId, Ended,
    Engine, EngineChannel, EngineConfig, FindingCount, Lease, Outcome, PendingCount, Queue, QueueError, Recorded,
    RestartReason, Retention, Search, Status, Transport,
};
use tokio::sync::Semaphore;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::loud::Loud;

const SOON: Duration = Duration::from_secs(30);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Call {
    Claim,
    Record,
}

/// A queue one of whose calls for [`channel`] blocks its thread, whatever its deadline, once it is told to.
struct Blocking {
    queue: Arc<ModelQueue>,
    next_waits_for: Mutex<Option<(Call, mpsc::Receiver<()>)>>,
}

impl Blocking {
    fn block(&self, call: Call, channel_name: &ChannelName) {
        let of_it = *channel_name == channel().name;
        let waits_for = self.next_waits_for.lock().unwrap().take_if(|(next, _)| of_it && *next == call);
        if let Some((_, let_go)) = waits_for {
            // In place: tokio's timers and sockets may hang on the very thread that is blocked.
            tokio::task::block_in_place(|| let_go.recv_timeout(SOON * 2)).unwrap();
        }
    }
}

impl Queue for Blocking {
    type Effect = MarkEffect;

    async fn claim(
        &self,
        channel_name: &ChannelName,
        slots: NonZeroUsize,
        lease: Duration,
        search: Search,
    ) -> Result<Vec<Lease>, QueueError> {
        self.block(Call::Claim, channel_name);
        self.queue.claim(channel_name, slots, lease, search).await
    }

    async fn record(&self, channel: &ChannelPolicy, ended: &[Ended<MarkEffect>]) -> Result<Recorded, QueueError> {
        self.block(Call::Record, &channel.name);
        self.queue.record(channel, ended).await
    }

    async fn give_back(&self, channel: &ChannelName, leases: &[(DeliveryId, ClaimToken)]) -> Result<(), QueueError> {
        self.queue.give_back(channel, leases).await
    }

    async fn clean_up(&self, retention: &Retention) -> Result<CleanedUp, QueueError> {
        self.queue.clean_up(retention).await
    }

    async fn count_pending(&self, channels: &[ChannelName]) -> Result<Vec<PendingCount>, QueueError> {
        self.queue.count_pending(channels).await
    }

    async fn audit(&self, policy: &AuditPolicy) -> Result<Vec<FindingCount>, QueueError> {
        self.queue.audit(policy).await
    }
}

/// Answers success once the gate lets it; the channel `other` needs no gate.
struct Gated {
    gate: Semaphore,
    sent: Mutex<Vec<DeliveryId>>,
}

#[async_trait]
impl Transport<MarkEffect> for Gated {
    async fn attempt(&self, lease: &Lease) -> Attempted<MarkEffect> {
        self.sent.lock().unwrap().push(lease.delivery.id);
        if lease.delivery.channel == channel().name {
            self.gate.acquire().await.unwrap().forget();
        }
        Outcome::Succeeded.into()
    }
}

async fn eventually(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let began = Instant::now();
    while !holds().await {
        assert!(began.elapsed() < SOON, "not in time: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn succeed(model: &Model, ids: &[DeliveryId]) {
    for id in ids {
        eventually("it is delivered", async || {
            model.look(*id).await.is_some_and(|look| look.status == Status::Succeeded)
        })
        .await;
    }
}

/// Both blocked calls in one test, as what is logged is the process's.
#[tokio::test(flavor = "multi_thread", worker_threads = 6)]
async fn a_claimer_with_a_stuck_call_is_replaced_and_nothing_is_sent_twice() {
    let loud = Loud::default();
    tracing_subscriber::registry().with(loud.clone()).init();
    for (stuck, call) in [Call::Claim, Call::Record].into_iter().enumerate() {
        blocked(call).await;
        let said = loud.said();
        assert_eq!(said.iter().filter(|message| message.contains("stuck")).count(), stuck + 1, "{said:?}");
    }
}

async fn blocked(call: Call) {
    let model = Model(ModelQueue::new());
    let queue = Arc::new(Blocking { queue: model.queue(), next_waits_for: Mutex::default() });
    let transport = Arc::new(Gated { gate: Semaphore::new(0), sent: Mutex::default() });
    let channels = [channel(), channel_named("other")].map(|policy| {
        let transport: Arc<dyn Transport<MarkEffect>> = transport.clone();
        EngineChannel { policy, transport }
    });
    let (millis, seconds) = (Duration::from_millis, Duration::from_secs);
    let config = EngineConfig {
        queue_timeout: millis(100),
        poll_interval: millis(50),
        send_timeout: seconds(40),
        shutdown_deadline: seconds(40),
        ..EngineConfig::default()
    };
    let engine = Engine::start(Arc::clone(&queue), channels.into(), config, None).await.unwrap();
    let id = model.record(wishes(1, None)).await[0];
    eventually("it is under way", async || transport.sent.lock().unwrap().contains(&id)).await;

    // The other sender has a free slot, so that the claimer claims again.
    let (let_go, wait) = mpsc::channel();
    *queue.next_waits_for.lock().unwrap() = Some((call, wait));
    transport.gate.add_permits(1);
    eventually("the call is stuck", async || queue.next_waits_for.lock().unwrap().is_none()).await;
    if call == Call::Claim {
        succeed(&model, &[id]).await;
    } else {
        assert_eq!(model.look(id).await.unwrap().status, Status::Pending);
    }
    let others = model.record(vec![Wish { channel: channel_named("other").name, ordering_key: None }; 20]).await;
    succeed(&model, &others).await;

    // Its longest step is a call to the queue and 5 s; looked at each second.
    let claimer = ChildId::Claimer(channel().name);
    eventually("its successor runs", async || {
        let health = engine.health();
        let actor = health.actor(&claimer).unwrap();
        actor.state == ActorState::Running && (actor.restarts, actor.last_restart) == (1, Some(RestartReason::Stuck))
    })
    .await;
    succeed(&model, &[id]).await;
    let next = model.record(wishes(1, None)).await[0];
    transport.gate.add_permits(1);
    succeed(&model, &[next]).await;
    // What was stuck goes on, and is in vain.
    let_go.send(()).unwrap();
    let last = model.record(wishes(1, None)).await[0];
    transport.gate.add_permits(1);
    succeed(&model, &[last]).await;
    let sent = transport.sent.lock().unwrap().clone();
    assert_eq!([id, next, last].map(|id| sent.iter().filter(|sent| **sent == id).count()), [1, 1, 1]);
    let restarts: u64 = engine.health().actors.iter().map(|actor| actor.restarts).sum();
    assert_eq!(restarts, 1, "nobody else was");
    engine.shut_down().await;
}
