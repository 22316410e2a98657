//! One run: what takes part in it, and what is written down.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use postrider_actors::checker::{
    Act, ActResult, Commit, Fate, Fault, History, OperatorAct, Report, Rules, Scope, Worker, check,
};
use postrider_actors::laws::{Harness, Wish};
use postrider_actors::model::{Defect, Model, ModelQueue};
use postrider_actors::{
    Backoff, ChannelName, ChannelPolicy, DeliveryId, Engine, EngineChannel, EngineConfig, Jitter, RestartIntensity,
};
use tokio::time::Instant;

use crate::nemesis;
use crate::parts::{Receiver, SimQueue};

pub const LEASE: Duration = Duration::from_secs(10);
pub const SEND_TIMEOUT: Duration = Duration::from_secs(2);
/// Faults, hosts and operators are at work for so long.
pub const TURMOIL: Duration = Duration::from_secs(60);
/// A lease over others that ran out is up to 64 times as long.
const DRAINED_BY: Duration = Duration::from_secs(60 + 64 * 10 + 120);

pub const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// splitmix64: every draw of a run comes from one of these.
#[derive(Debug, Clone)]
pub struct Draws(u64);

impl Draws {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

/// Where in the life of an attempt a fault was aimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Gap {
    InClaim,
    BeforeSend,
    MidSend,
    AfterAnswer,
    BeforeRecord,
    InRecord,
    AfterRecord,
}

impl Gap {
    pub const ALL: [Self; 7] = [
        Self::InClaim,
        Self::BeforeSend,
        Self::MidSend,
        Self::AfterAnswer,
        Self::BeforeRecord,
        Self::InRecord,
        Self::AfterRecord,
    ];
}

/// What is wrong just now.
#[derive(Debug, Default)]
pub struct Trouble {
    pub unreachable_until: Duration,
    pub deaf_until: Duration,
    pub receiver_until: Duration,
    /// Replicas that stand still, and until when.
    pub frozen: BTreeMap<u32, Duration>,
    /// When the store's clock last leapt ahead.
    pub leapt: Option<Duration>,
    /// Kill somebody at the so-manieth time that this gap is reached.
    pub armed: Option<(Gap, u64, nemesis::Victim)>,
    pub over: bool,
}

pub struct Replica {
    pub number: u32,
    pub engine: Engine,
}

pub struct Shared {
    pub draws: Draws,
    pub history: History,
    pub trouble: Trouble,
    pub replicas: Vec<Replica>,
    next_replica: u32,
    /// How often each gap was hit.
    pub hits: BTreeMap<Gap, u64>,
}

pub struct World {
    began: Instant,
    pub queue: Arc<ModelQueue>,
    shared: Mutex<Shared>,
}

pub fn channels() -> Vec<ChannelPolicy> {
    let policy = |name: &str| ChannelPolicy { name: name.parse().unwrap(), max_age: Duration::from_secs(3600) };
    vec![policy("first"), policy("second")]
}

impl World {
    pub fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap()
    }

    pub fn now(&self) -> Duration {
        self.began.elapsed()
    }

    pub fn below(&self, bound: u64) -> u64 {
        self.lock().draws.below(bound)
    }

    /// Some time of at most so many milliseconds.
    pub async fn pause(&self, most: u64) {
        let wait = millis(1 + self.below(most));
        tokio::time::sleep(wait).await;
    }

    pub fn fault(&self, kind: impl Into<String>, scope: Scope, lasting: Duration) {
        let (kind, from) = (kind.into(), self.now());
        self.lock().history.faults.push(Fault { kind, scope, from, until: from + lasting });
    }

    /// Starts a process anew, under a number that no other had.
    pub async fn start_replica(self: &Arc<Self>) {
        let number = {
            let mut shared = self.lock();
            shared.next_replica += 1;
            shared.next_replica
        };
        let queue = Arc::new(SimQueue { world: Arc::clone(self), replica: number });
        let channels = channels()
            .into_iter()
            .map(|policy| {
                let transport =
                    Arc::new(Receiver { world: Arc::clone(self), worker: Worker { replica: number, sender: 0 } });
                EngineChannel { policy, transport: transport as _ }
            })
            .collect();
        let world = Arc::downgrade(self);
        let jitter = Jitter::from_fn(move || {
            world.upgrade().map_or(0.5, |world| world.below(1 << 20) as f64 / f64::from(1 << 20))
        });
        let config = EngineConfig {
            lease: LEASE,
            send_timeout: SEND_TIMEOUT,
            recording_margin: Duration::from_secs(3),
            queue_timeout: Duration::from_secs(1),
            poll_interval: millis(500),
            slots_per_sender: 2.try_into().unwrap(),
            shutdown_deadline: Duration::from_secs(3),
            backoff: Backoff { first: Duration::from_secs(1), cap: Duration::from_secs(10) },
            jitter,
            restart_intensity: RestartIntensity { restarts: 50, cap: Duration::from_secs(1), ..Default::default() },
            cleanup_interval: Duration::from_secs(5),
            gauge_interval: Duration::from_secs(5),
            ..EngineConfig::default()
        };
        let engine = Engine::start(queue, channels, config, None).await.unwrap();
        self.lock().replicas.push(Replica { number, engine });
    }
}

/// What a run came to.
pub struct Outcome {
    pub report: Report,
    pub hits: BTreeMap<Gap, u64>,
    history: History,
}

impl Outcome {
    /// A digest of everything that was written down, in its order.
    pub fn trace(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        format!("{:?}", self.history).hash(&mut hasher);
        hasher.finish()
    }
}

/// Hosts record, each transaction at its own pace, so that they overlap.
async fn host(world: Arc<World>) {
    let model = Model(Arc::clone(&world.queue));
    while world.now() < TURMOIL {
        world.pause(12_000).await;
        let (channel, key) = (channel(&world), world.below(4));
        let key = (key < 3).then(|| format!("key {key}"));
        let (delivery, drawn) = world.queue.begin();
        world.pause(1_500).await;
        let fate = match world.below(10) {
            0 | 1 => Fate::RolledBack,
            2 => Fate::Unknown,
            _ => Fate::Committed,
        };
        let commits = fate == Fate::Committed || (fate == Fate::Unknown && world.below(2) == 0);
        let wish = Wish { channel: channel.clone(), ordering_key: key.clone() };
        {
            let mut shared = world.lock();
            let place = shared.history.commits.len() as u64;
            shared.history.commits.push(Commit { delivery, channel: channel.clone(), key, place, fate });
            model.queue().finish(delivery, drawn, wish, commits);
        }
        let replicas: Vec<Engine> = world.lock().replicas.iter().map(|replica| replica.engine.clone()).collect();
        if !replicas.is_empty() && world.below(2) == 0 {
            replicas[world.below(replicas.len() as u64) as usize].hint(&channel);
        }
    }
}

fn channel(world: &World) -> ChannelName {
    channels().swap_remove(usize::from(world.below(4) == 0)).name
}

/// An operator retries and cancels whatever there is, at any moment.
async fn operator(world: Arc<World>) {
    let model = Model(Arc::clone(&world.queue));
    while world.now() < TURMOIL {
        world.pause(4_000).await;
        let delivery: Option<DeliveryId> = {
            let mut shared = world.lock();
            let count = shared.history.commits.len() as u64;
            // The newest more often: they are under way.
            let back = if count == 0 { None } else { Some(shared.draws.below(count.min(8))) };
            back.map(|back| shared.history.commits[(count - 1 - back) as usize].delivery)
        };
        let Some(delivery) = delivery else { continue };
        let act = if world.below(3) == 0 { Act::Cancel } else { Act::Retry };
        let done = match act {
            Act::Cancel => model.cancel(delivery).await,
            Act::Retry => model.retry(delivery).await,
        };
        let result = match (done, world.below(10)) {
            (_, 0) => ActResult::Unknown,
            (true, _) => ActResult::Done,
            (false, _) => ActResult::Refused,
        };
        world.lock().history.acts.push(OperatorAct { delivery, act, result });
    }
}

async fn simulate(seed: u64, defect: Option<Defect>) -> Outcome {
    let queue = defect.map_or_else(ModelQueue::new, ModelQueue::broken);
    let world = Arc::new(World {
        began: Instant::now(),
        queue,
        shared: Mutex::new(Shared {
            draws: Draws::new(seed),
            history: History::default(),
            trouble: Trouble::default(),
            replicas: Vec::new(),
            next_replica: 0,
            hits: BTreeMap::new(),
        }),
    });
    for _ in 0..=world.below(3) {
        world.start_replica().await;
    }
    let mut parties = tokio::task::JoinSet::new();
    for _ in 0..2 + world.below(4) {
        parties.spawn(host(Arc::clone(&world)));
    }
    parties.spawn(operator(Arc::clone(&world)));
    parties.spawn(nemesis::strike(Arc::clone(&world)));
    while parties.join_next().await.is_some() {}
    nemesis::relent(&world).await;
    while world.queue.undrained() > 0 && world.now() < TURMOIL + DRAINED_BY {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    // What is on its way yet arrives.
    tokio::time::sleep(Duration::from_secs(5)).await;
    let replicas = std::mem::take(&mut world.lock().replicas);
    for replica in replicas {
        replica.engine.shut_down().await;
    }
    let (mut history, hits) = {
        let mut shared = world.lock();
        (std::mem::take(&mut shared.history), std::mem::take(&mut shared.hits))
    };
    (history.transitions, history.ended) = (world.queue.journal(), world.queue.now());
    let rules = Rules {
        send_timeout: SEND_TIMEOUT,
        drained_within: Duration::from_secs(60),
        expires: false,
        abandons: false,
        wanted_faults: BTreeMap::new(),
    };
    Outcome { report: check(&history, &rules), hits, history }
}

/// One run from one seed, on a runtime of its own.
pub fn run(seed: u64, defect: Option<Defect>) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(simulate(seed, defect))
}
