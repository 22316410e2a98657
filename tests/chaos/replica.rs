//! A process that delivers: half of them the subsystem as a host embeds it, half its engine over a queue that is watched,
//! which writes down what came of each recording.

use std::io::BufRead;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use postrider::channel::Channels;
use postrider::outbound::{HttpsClient, HttpsConfig};
use postrider::queue::{Effect, PgQueue, Reads, connect_options, pool_options};
use postrider::{Subsystem, SubsystemConfig};
use postrider_actors::{
    AuditPolicy, ChannelName, ChannelPolicy, ChildId, ClaimToken, CleanedUp, DeliveryId, Ended, Engine, EngineChannel,
    FindingCount, Lease, PendingCount, Queue, QueueError, Recorded, Retention, Search, SenderIndex,
};
use serde::{Deserialize, Serialize};
use sqlx::ConnectOptions;
use sqlx::postgres::PgConnectOptions;

use crate::channel::{loopback, name, posting};
use crate::clock::Clock;
use crate::settings::{SEND_TIMEOUT, engine};
use crate::worker_log::WorkerLog;

/// The exit code of a process whose supervisor has ended.
pub const ENDED: i32 = 3;
/// Where a process finds its orders.
pub const ORDERS: &str = "POSTRIDER_CHAOS_REPLICA";

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Orders {
    /// New at each start.
    pub replica: u32,
    pub database: String,
    pub roots: PathBuf,
    pub log: PathBuf,
    pub watched: bool,
    pub clock: Clock,
}

/// What can be killed in a replica, as a line of its input.
pub fn child_named(text: &str) -> Option<ChildId> {
    let mut words = text.split_whitespace();
    let kind = words.next()?;
    let mut number = || words.next()?.parse::<usize>().ok();
    Some(match kind {
        "sender" => ChildId::Sender(name(number()?), SenderIndex::BOTH[number()?]),
        "claimer" => ChildId::Claimer(name(number()?)),
        "cleanup" => ChildId::Cleanup,
        "gauge" => ChildId::Gauge,
        "supervisor" => ChildId::Supervisor,
        _ => return None,
    })
}

enum Running {
    Subsystem(Subsystem),
    Watched(Engine),
}

/// Runs until its input ends, or its supervisor does.
pub fn run(orders: &str) {
    let orders: Orders = serde_json::from_str(orders).unwrap();
    let log = WorkerLog::open(&orders.log, orders.replica, orders.clock);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let running = runtime.block_on(start(&orders, log));
    let kills = match &running {
        Running::Subsystem(subsystem) => {
            let subsystem = subsystem.clone();
            Box::new(move |child: &ChildId| subsystem.kill(child)) as Box<dyn Fn(&ChildId) + Send>
        }
        Running::Watched(engine) => {
            let engine = engine.clone();
            Box::new(move |child: &ChildId| engine.kill(child))
        }
    };
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            let Ok(line) = line else { break };
            if let Some(child) = child_named(&line) {
                kills(&child);
            }
        }
        std::process::exit(0);
    });
    runtime.block_on(async {
        match &running {
            Running::Subsystem(subsystem) => subsystem.ended().await,
            Running::Watched(engine) => engine.ended().await,
        }
    });
    std::process::exit(ENDED);
}

async fn start(orders: &Orders, log: WorkerLog) -> Running {
    let client = HttpsClient::new(HttpsConfig {
        policy: loopback(),
        extra_roots: Some(orders.roots.clone()),
        name_server: Some("127.0.0.1:9".parse().unwrap()),
        connect_timeout: SEND_TIMEOUT / 2,
        total_timeout: SEND_TIMEOUT,
        ..HttpsConfig::default()
    });
    let channels = posting(client.unwrap(), &log);
    let options: PgConnectOptions = orders.database.parse().unwrap();
    let options = options.disable_statement_logging();
    if orders.watched {
        return Running::Watched(watched(options, &channels, log).await);
    }
    loop {
        let config = SubsystemConfig { engine: engine(), ..SubsystemConfig::default() };
        match Subsystem::spawn(options.clone(), channels.clone(), config).await {
            Ok(subsystem) => return Running::Subsystem(subsystem),
            // A host would be started again by what watches over it.
            Err(error) => eprintln!("not started: {error}"),
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

async fn watched(options: PgConnectOptions, channels: &Channels, log: WorkerLog) -> Engine {
    let config = engine();
    let pool = pool_options(config.queue_timeout).max_connections(6).connect_lazy_with(connect_options(options));
    let engine_channels = channels.iter().zip(channels.policies());
    let reads = Reads::new(pool.clone());
    let engine_channels = engine_channels
        .map(|(channel, policy)| EngineChannel { policy, transport: channel.transport(&reads) })
        .collect();
    let queue = Arc::new(Watched { queue: PgQueue::new(pool), log });
    Engine::start(queue, engine_channels, config, None).await.unwrap()
}

/// Writes down what is asked to be recorded, and what came of it.
struct Watched {
    queue: PgQueue,
    log: WorkerLog,
}

impl Queue for Watched {
    type Effect = Effect;

    async fn claim(
        &self,
        channel: &ChannelName,
        slots: NonZeroUsize,
        lease: Duration,
        search: Search,
    ) -> Result<Vec<Lease>, QueueError> {
        self.queue.claim(channel, slots, lease, search).await
    }

    async fn record(&self, channel: &ChannelPolicy, ended: &[Ended<Effect>]) -> Result<Recorded, QueueError> {
        for one in ended {
            self.log.recording(one);
        }
        let recorded = self.queue.record(channel, ended).await?;
        for (one, settled) in ended.iter().zip(&recorded.settled) {
            self.log.settled(one, *settled);
        }
        Ok(recorded)
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
