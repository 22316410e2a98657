//! The laws of the actor tree over a queue. Each is a guarantee; the test that runs it carries its name.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

use std::collections::{HashMap, HashSet};
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::edges::Poison;
use super::{Harness, Wish, channel, channel_named, wishes};
use crate::config::{EngineConfig, RestartIntensity};
use crate::engine::{Engine, EngineChannel};
use crate::health::{ActorState, ChildId, RestartReason};
use crate::ids::DeliveryId;
use crate::messages::SenderIndex;
use crate::outcome::{Attempted, Outcome, Reason, Status};
use crate::ports::{Lease, Queue, Transport};

const SEND_TIMEOUT: Duration = Duration::from_secs(1);
const LEASE: Duration = Duration::from_secs(60);
const RETRY_WAIT: Duration = Duration::from_secs(10);

pub(super) fn config() -> EngineConfig {
    EngineConfig {
        lease: LEASE,
        send_timeout: SEND_TIMEOUT,
        recording_margin: Duration::from_secs(3),
        queue_timeout: Duration::from_secs(3),
        poll_interval: Duration::from_millis(50),
        shutdown_deadline: Duration::from_secs(2),
        restart_intensity: RestartIntensity {
            first_wait: Duration::from_millis(10),
            cap: Duration::from_millis(100),
            ..RestartIntensity::default()
        },
        ..EngineConfig::default()
    }
}

/// What a receiver does with an attempt.
#[derive(Debug, Clone, Copy)]
pub(super) enum Act {
    Answer(Outcome),
    /// Answers success once the gate lets it.
    Wait,
    /// Never answers.
    Stall,
    Panic,
    /// Goes wrong.
    Poison(Poison),
}

/// A receiver that acts by script and keeps a log of its own.
pub(super) struct Receiver {
    act: Box<dyn Fn(&Lease) -> Act + Send + Sync>,
    gate: Semaphore,
    log: Mutex<Vec<(DeliveryId, u32)>>,
    under_way: AtomicUsize,
    most_under_way: AtomicUsize,
    busy_keys: Mutex<HashSet<String>>,
}

impl Receiver {
    pub(super) fn new(act: impl Fn(&Lease) -> Act + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self {
            act: Box::new(act),
            gate: Semaphore::new(0),
            log: Mutex::default(),
            under_way: AtomicUsize::new(0),
            most_under_way: AtomicUsize::new(0),
            busy_keys: Mutex::default(),
        })
    }

    fn log(&self) -> Vec<(DeliveryId, u32)> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn sent(&self, delivery: DeliveryId) -> usize {
        self.log().iter().filter(|(sent, _)| *sent == delivery).count()
    }

    fn under_way(&self) -> usize {
        self.under_way.load(Ordering::SeqCst)
    }
}

/// Notices the end of an attempt, however it ends.
struct UnderWay<'a>(&'a Receiver, Option<String>);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.under_way.fetch_sub(1, Ordering::SeqCst);
        if let Some(key) = &self.1 {
            self.0.busy_keys.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
        }
    }
}

#[async_trait]
impl<E: Send + Sync + 'static> Transport<E> for Receiver {
    async fn attempt(&self, lease: &Lease) -> Attempted<E> {
        let key = lease.delivery.ordering_key.clone();
        if let Some(key) = &key {
            let alone = self.busy_keys.lock().unwrap_or_else(PoisonError::into_inner).insert(key.clone());
            assert!(alone, "two attempts of one key at a time");
        }
        let now = self.under_way.fetch_add(1, Ordering::SeqCst) + 1;
        self.most_under_way.fetch_max(now, Ordering::SeqCst);
        let _under_way = UnderWay(self, key);
        self.log.lock().unwrap_or_else(PoisonError::into_inner).push((lease.delivery.id, lease.attempt));
        match (self.act)(lease) {
            Act::Answer(outcome) => outcome.into(),
            Act::Wait => {
                self.gate.acquire().await.unwrap().forget();
                Outcome::Succeeded.into()
            }
            Act::Stall => std::future::pending().await,
            Act::Panic => panic!("a transport that panics"),
            Act::Poison(poison) => poison.act().await.into(),
        }
    }
}

pub(super) async fn eventually(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !holds().await {
        assert!(Instant::now() < deadline, "not in time: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

pub(super) async fn start<H: Harness>(harness: &H, receiver: &Arc<Receiver>, config: EngineConfig) -> Engine {
    let transport: Arc<dyn Transport<<H::Queue as Queue>::Effect>> = receiver.clone();
    let channels =
        [channel(), channel_named("other")].map(|policy| EngineChannel { policy, transport: Arc::clone(&transport) });
    Engine::start(harness.queue(), channels.into(), config, None).await.unwrap()
}

pub(super) async fn becomes<H: Harness>(harness: &H, ids: &[DeliveryId], status: Status) {
    eventually(&format!("{} deliveries become {status}", ids.len()), async || {
        for id in ids {
            if harness.look(*id).await.is_none_or(|look| look.status != status) {
                return false;
            }
        }
        true
    })
    .await;
}

pub(super) fn restarts(engine: &Engine) -> u64 {
    engine.health().actors.iter().map(|actor| actor.restarts).sum()
}

fn sender(index: usize) -> ChildId {
    ChildId::Sender(channel().name, SenderIndex::BOTH[index])
}

fn claimer() -> ChildId {
    ChildId::Claimer(channel().name)
}

pub async fn everything_recorded_is_sent_once_when_nothing_fails<H: Harness>(harness: H) {
    let receiver = Receiver::new(|_| Act::Answer(Outcome::Succeeded));
    let slots_per_sender = NonZeroUsize::new(8).unwrap();
    let engine = start(&harness, &receiver, EngineConfig { slots_per_sender, ..config() }).await;
    let mut ids = harness.record(wishes(30, None)).await;
    engine.hint(&channel().name);
    ids.extend(harness.record(wishes(10, Some("key"))).await);
    becomes(&harness, &ids, Status::Succeeded).await;
    assert_eq!(receiver.log().len(), 40);
    assert!(ids.iter().all(|id| receiver.sent(*id) == 1));
    assert!(engine.health().is_well());
    engine.shut_down().await;
}

pub async fn deliveries_of_a_key_reach_the_receiver_one_at_a_time_in_commit_order<H: Harness>(harness: H) {
    // Every third attempt has to be repeated; the receiver itself refuses two of a key at a time.
    let count = AtomicUsize::new(0);
    let receiver = Receiver::new(move |_| match count.fetch_add(1, Ordering::SeqCst) % 3 {
        2 => Act::Answer(Outcome::retry(Reason::Connection)),
        _ => Act::Answer(Outcome::Succeeded),
    });
    let slots_per_sender = NonZeroUsize::new(8).unwrap();
    let engine = start(&harness, &receiver, EngineConfig { slots_per_sender, ..config() }).await;
    let mut by_key: HashMap<&str, Vec<DeliveryId>> = HashMap::new();
    for round in 0..4 {
        for key in ["a", "b", "c"] {
            let ids = harness.record(wishes(1 + round % 2, Some(key))).await;
            by_key.entry(key).or_default().extend(ids);
        }
    }
    let all: Vec<DeliveryId> = by_key.values().flatten().copied().collect();
    eventually("all succeed", async || {
        harness.let_pass(RETRY_WAIT).await;
        let mut done = 0;
        for id in &all {
            done += usize::from(harness.look(*id).await.is_some_and(|look| look.status == Status::Succeeded));
        }
        done == all.len()
    })
    .await;
    let mut first_receipts = receiver.log();
    let mut seen = HashSet::new();
    first_receipts.retain(|(id, _)| seen.insert(*id));
    for ids in by_key.values() {
        let received: Vec<_> = first_receipts.iter().map(|(id, _)| *id).filter(|id| ids.contains(id)).collect();
        assert_eq!(received, *ids);
    }
    engine.shut_down().await;
}

pub async fn the_next_of_a_key_goes_out_as_soon_as_its_head_has_ended<H: Harness>(harness: H) {
    let receiver = Receiver::new(|_| Act::Answer(Outcome::Succeeded));
    let rarely = EngineConfig { poll_interval: Duration::from_secs(3600), ..config() };
    let engine = start(&harness, &receiver, rarely).await;
    eventually("the first look is over", async || engine.health().is_well()).await;
    let ids = harness.record(wishes(6, Some("key"))).await;
    engine.hint(&channel().name);
    becomes(&harness, &ids, Status::Succeeded).await;
    engine.shut_down().await;
}

pub async fn no_more_is_claimed_than_there_are_free_slots<H: Harness>(harness: H) {
    let receiver = Receiver::new(|_| Act::Wait);
    let long = Duration::from_secs(20);
    let engine =
        start(&harness, &receiver, EngineConfig { send_timeout: long, shutdown_deadline: long, ..config() }).await;
    let ids = harness.record(wishes(7, None)).await;
    eventually("both senders are busy", async || receiver.under_way() == 2).await;
    // Polls go on meanwhile, and claim nothing.
    tokio::time::sleep(config().poll_interval * 5).await;
    let mut claimed = 0;
    for id in &ids {
        claimed += harness.look(*id).await.unwrap().attempts;
    }
    assert_eq!(claimed, 2);
    receiver.gate.add_permits(ids.len());
    becomes(&harness, &ids, Status::Succeeded).await;
    assert_eq!(receiver.most_under_way.load(Ordering::SeqCst), 2);
    engine.shut_down().await;
}

pub async fn a_retried_delivery_keeps_its_id_and_counts_its_attempts<H: Harness>(harness: H) {
    let receiver = Receiver::new(|lease| match lease.attempt {
        1 | 2 => Act::Answer(Outcome::retry(Reason::Connection)),
        _ => Act::Answer(Outcome::Succeeded),
    });
    let engine = start(&harness, &receiver, config()).await;
    let id = harness.record(wishes(1, None)).await[0];
    for attempt in 1..=2 {
        eventually("an attempt is recorded", async || {
            let recorded = engine.health().actors.iter().all(|actor| actor.in_flight == 0);
            let look = harness.look(id).await.unwrap();
            recorded && receiver.sent(id) == attempt && look.last_error == Some(Reason::Connection)
        })
        .await;
        harness.let_pass(RETRY_WAIT * 2).await;
    }
    becomes(&harness, &[id], Status::Succeeded).await;
    assert_eq!(receiver.log(), [(id, 1), (id, 2), (id, 3)]);
    engine.shut_down().await;
}

pub async fn a_delivery_past_max_age_fails_unsent<H: Harness>(harness: H) {
    let id = harness.record(wishes(1, None)).await[0];
    harness.let_pass(channel().max_age + Duration::from_secs(1)).await;
    let receiver = Receiver::new(|_| Act::Answer(Outcome::Succeeded));
    let engine = start(&harness, &receiver, config()).await;
    becomes(&harness, &[id], Status::Failed).await;
    assert_eq!(harness.look(id).await.unwrap().last_error, Some(Reason::Expired));
    assert_eq!(receiver.log(), []);
    engine.shut_down().await;
}

pub async fn a_stalled_receiver_is_retried_once_its_time_is_spent<H: Harness>(harness: H) {
    let receiver = Receiver::new(|lease| if lease.attempt == 1 { Act::Stall } else { Act::Answer(Outcome::Succeeded) });
    let engine = start(&harness, &receiver, config()).await;
    let id = harness.record(wishes(1, None)).await[0];
    eventually("the attempt begins", async || receiver.under_way() == 1).await;
    let began = Instant::now();
    eventually("it ends", async || receiver.under_way() == 0).await;
    assert!(began.elapsed() >= SEND_TIMEOUT - Duration::from_millis(100), "not before");
    eventually("it is recorded", async || {
        harness.look(id).await.is_some_and(|look| look.last_error == Some(Reason::Timeout))
    })
    .await;
    assert_eq!(harness.look(id).await.unwrap().status, Status::Pending);
    engine.shut_down().await;
}

pub async fn a_panic_fails_its_attempt_alone_and_frees_its_slot<H: Harness>(harness: H) {
    let ids = harness.record(wishes(20, None)).await;
    let poison = ids[..3].to_vec();
    let receiver = Receiver::new(move |lease| match poison.contains(&lease.delivery.id) {
        true => Act::Panic,
        false => Act::Answer(Outcome::Succeeded),
    });
    let engine = start(&harness, &receiver, config()).await;
    becomes(&harness, &ids[3..], Status::Succeeded).await;
    for id in &ids[..3] {
        eventually("a panic is recorded", async || {
            harness.look(*id).await.is_some_and(|look| look.last_error == Some(Reason::Panicked))
        })
        .await;
    }
    eventually("every slot is free", async || engine.health().actors.iter().all(|actor| actor.in_flight == 0)).await;
    assert_eq!(restarts(&engine), 0, "no actor pays for it");
    engine.shut_down().await;
}

pub async fn a_sender_that_dies_aborts_its_attempt_and_another_sends_again_under_the_same_id<H: Harness>(harness: H) {
    let receiver = Receiver::new(|lease| if lease.attempt == 1 { Act::Stall } else { Act::Answer(Outcome::Succeeded) });
    let long = Duration::from_secs(20);
    let engine =
        start(&harness, &receiver, EngineConfig { send_timeout: long, shutdown_deadline: long, ..config() }).await;
    let ids = harness.record(wishes(2, None)).await;
    eventually("both attempts are under way", async || receiver.under_way() == 2).await;
    engine.kill(&sender(0));
    engine.kill(&sender(1));
    eventually("the attempts are aborted", async || receiver.under_way() == 0).await;
    eventually("the senders are there again", async || {
        let health = engine.health();
        [sender(0), sender(1)].iter().all(|child| {
            let actor = health.actor(child).unwrap();
            actor.restarts == 1 && actor.state == ActorState::Running
        })
    })
    .await;
    assert_eq!(engine.health().actor(&sender(0)).unwrap().last_restart, Some(RestartReason::Killed));
    assert_eq!(receiver.log().len(), 2, "not again while the lease lasts");
    harness.let_pass(LEASE).await;
    becomes(&harness, &ids, Status::Succeeded).await;
    assert!(ids.iter().all(|id| receiver.sent(*id) == 2));
    engine.shut_down().await;
}

pub async fn a_claimer_that_dies_loses_no_outcome<H: Harness>(harness: H) {
    let receiver = Receiver::new(|_| Act::Wait);
    let long = Duration::from_secs(20);
    let engine =
        start(&harness, &receiver, EngineConfig { send_timeout: long, shutdown_deadline: long, ..config() }).await;
    let ids = harness.record(wishes(2, None)).await;
    eventually("both attempts are under way", async || receiver.under_way() == 2).await;
    // One outcome comes while the claimer is dead or dying, the other once its successor is there.
    engine.kill(&claimer());
    receiver.gate.add_permits(1);
    eventually("the claimer is there again", async || {
        let health = engine.health();
        let claimer = health.actor(&claimer()).unwrap();
        claimer.restarts == 1 && claimer.state == ActorState::Running
    })
    .await;
    receiver.gate.add_permits(1);
    becomes(&harness, &ids, Status::Succeeded).await;
    assert!(ids.iter().all(|id| receiver.sent(*id) == 1), "none was sent twice");
    let more = harness.record(wishes(2, None)).await;
    receiver.gate.add_permits(2);
    becomes(&harness, &more, Status::Succeeded).await;
    engine.shut_down().await;
}

pub async fn a_delivery_that_an_operator_retries_in_mid_attempt_loses_no_slot<H: Harness>(harness: H) {
    let receiver = Receiver::new(|_| Act::Wait);
    let long = Duration::from_secs(20);
    let slots_per_sender = NonZeroUsize::new(2).unwrap();
    let slow = EngineConfig { send_timeout: long, shutdown_deadline: long, slots_per_sender, ..config() };
    let engine = start(&harness, &receiver, slow).await;
    let ids = harness.record(wishes(3, None)).await;
    eventually("all are under way", async || receiver.under_way() == 3).await;
    assert!(harness.cancel(ids[0]).await && harness.retry(ids[0]).await);
    eventually("it is under way twice", async || receiver.under_way() == 4).await;
    receiver.gate.add_permits(4);
    becomes(&harness, &ids, Status::Succeeded).await;
    eventually("every slot is free", async || engine.health().actors.iter().all(|actor| actor.in_flight == 0)).await;
    let more = harness.record(wishes(8, None)).await;
    eventually("all four slots are used", async || receiver.under_way() == 4).await;
    receiver.gate.add_permits(8);
    becomes(&harness, &more, Status::Succeeded).await;
    engine.shut_down().await;
}

pub async fn an_unreachable_queue_is_a_state_and_restarts_nothing<H: Harness>(harness: H) {
    let receiver = Receiver::new(|_| Act::Wait);
    let long = Duration::from_secs(40);
    let engine =
        start(&harness, &receiver, EngineConfig { send_timeout: long, shutdown_deadline: long, ..config() }).await;
    let id = harness.record(wishes(1, None)).await[0];
    eventually("the attempt is under way", async || receiver.under_way() == 1).await;
    harness.set_reachable(false).await;
    receiver.gate.add_permits(1);
    eventually("the outage is seen", async || {
        engine.health().channels.iter().all(|channel| channel.state == ActorState::DatabaseUnreachable)
    })
    .await;
    assert!(!engine.health().is_well());
    assert_eq!(restarts(&engine), 0);
    harness.set_reachable(true).await;
    becomes(&harness, &[id], Status::Succeeded).await;
    assert_eq!(receiver.sent(id), 1, "its outcome was kept while the lease lasted");
    let more = harness.record(wishes(1, None)).await;
    receiver.gate.add_permits(1);
    becomes(&harness, &more, Status::Succeeded).await;
    eventually("all is well again", async || engine.health().is_well()).await;
    assert_eq!(restarts(&engine), 0);
    engine.shut_down().await;
}

pub async fn past_the_restart_limit_a_channel_is_down_and_the_others_run<H: Harness>(harness: H) {
    let receiver = Receiver::new(|_| Act::Answer(Outcome::Succeeded));
    let cap = Duration::from_secs(2);
    let restart_intensity = RestartIntensity { cap, ..config().restart_intensity };
    let engine = start(&harness, &receiver, EngineConfig { restart_intensity, ..config() }).await;
    let down = |engine: &Engine| {
        engine.health().channels.iter().any(|one| one.channel == channel().name && one.state == ActorState::Down)
    };
    eventually("the channel is down", async || {
        engine.kill(&claimer());
        down(&engine)
    })
    .await;
    let other = vec![Wish { channel: channel_named("other").name, ordering_key: None }; 3];
    let others = harness.record(other).await;
    becomes(&harness, &others, Status::Succeeded).await;
    assert!(down(&engine), "still, while the others deliver");
    // It is tried again, and works once nothing kills it any more.
    let ids = harness.record(wishes(3, None)).await;
    becomes(&harness, &ids, Status::Succeeded).await;
    engine.shut_down().await;
}

pub async fn shutdown_lets_attempts_finish_and_records_them<H: Harness>(harness: H) {
    let receiver = Receiver::new(|_| Act::Wait);
    let long = Duration::from_secs(20);
    let engine =
        start(&harness, &receiver, EngineConfig { send_timeout: long, shutdown_deadline: long, ..config() }).await;
    let ids = harness.record(wishes(5, None)).await;
    eventually("both attempts are under way", async || receiver.under_way() == 2).await;
    let stopping = tokio::spawn({
        let engine = engine.clone();
        async move { engine.shut_down().await }
    });
    eventually("it drains", async || engine.health().actors.iter().any(|one| one.state == ActorState::Draining)).await;
    receiver.gate.add_permits(5);
    assert_eq!(stopping.await.unwrap().aborted_attempts, 0);
    assert!(engine.has_ended(), "when it is answered, it is over");
    let mut statuses = Vec::new();
    for id in &ids {
        let look = harness.look(*id).await.unwrap();
        statuses.push((look.status, look.attempts));
    }
    statuses.sort();
    let (pending, succeeded) = ((Status::Pending, 0), (Status::Succeeded, 1));
    assert_eq!(
        statuses,
        [pending, pending, pending, succeeded, succeeded],
        "what was begun is recorded, no more is begun"
    );
    assert!(engine.health().actors.iter().all(|actor| actor.state == ActorState::Stopped));
}

pub async fn shutdown_is_bounded_though_the_queue_is_unreachable<H: Harness>(harness: H) {
    let receiver = Receiver::new(|_| Act::Wait);
    let engine = start(&harness, &receiver, config()).await;
    let id = harness.record(wishes(1, None)).await[0];
    eventually("the attempt is under way", async || receiver.under_way() == 1).await;
    harness.set_reachable(false).await;
    receiver.gate.add_permits(1);
    eventually("the attempt has ended", async || receiver.under_way() == 0).await;
    let began = Instant::now();
    let report = engine.shut_down().await;
    assert!(began.elapsed() < config().shutdown_deadline + Duration::from_secs(4), "bounded");
    assert_eq!(report.aborted_attempts, 1, "its outcome could not be recorded");
    harness.set_reachable(true).await;
    assert_eq!(harness.look(id).await.unwrap().status, Status::Pending, "so its lease runs out and another sends it");
}

pub async fn shutdown_twice_is_one_shutdown<H: Harness>(harness: H) {
    let receiver = Receiver::new(|_| Act::Answer(Outcome::Succeeded));
    let engine = start(&harness, &receiver, config()).await;
    let (one, two) = tokio::join!(engine.shut_down(), engine.shut_down());
    assert_eq!(one, two);
    assert_eq!(engine.shut_down().await.aborted_attempts, 0);
    assert!(engine.has_ended());
}

pub async fn the_supervisors_end_ends_every_actor<H: Harness>(harness: H) {
    let receiver = Receiver::new(|_| Act::Stall);
    let long = Duration::from_secs(20);
    let engine =
        start(&harness, &receiver, EngineConfig { send_timeout: long, shutdown_deadline: long, ..config() }).await;
    harness.record(wishes(2, None)).await;
    eventually("both attempts are under way", async || receiver.under_way() == 2).await;
    engine.kill(&ChildId::Supervisor);
    engine.ended().await;
    eventually("nothing is left running", async || receiver.under_way() == 0).await;
    assert!(engine.health().actors.iter().all(|actor| actor.state == ActorState::Stopped));
    assert_eq!(engine.shut_down().await.aborted_attempts, 0);
}
