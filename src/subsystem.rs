//! The subsystem as a host embeds it: the actor tree over a pool of its own, and what wakes it.

use std::time::Duration;

use postrider_actors::{
    ChannelName, ChildId, ConfigError, Engine, EngineChannel, EngineConfig, ShutdownReport, StartError, TreeHealth,
};
use ractor::ActorCell;
use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection, PgPool};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::channel::Channels;
use crate::pooler::{PoolerError, SessionError};
use crate::queue::{self, PgQueue, Reads, SchemaError, check_schema};
use crate::recorder::Recorder;
use crate::wake::Waker;

/// A claimer claims while it records.
const CONNECTIONS_OF_A_CHANNEL: u32 = 2;
/// Connections that the tree needs besides [`CONNECTIONS_OF_A_CHANNEL`]: cleanup, gauge, listening, notifying, and two for what
/// transports read.
const SHARED_CONNECTIONS: u32 = 4 + queue::READING_CONNECTIONS;

/// The subsystem could not be started; nothing of it runs.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The settings cannot keep the guarantees.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The actors would wait for each other's connections.
    #[error("actors' pool size ({size}) is too small for {channels} channels: it must be at least {needed}")]
    PoolTooSmall {
        /// The size asked for.
        size: u32,
        /// Registered channels.
        channels: usize,
        /// The least size.
        needed: u32,
    },
    /// The database does not fit this release.
    #[error(transparent)]
    Schema(#[from] SchemaError),
    /// The database cannot be reached.
    #[error("the database cannot be reached")]
    Unreachable(#[source] sqlx::Error),
    /// A pooler in transaction or statement mode stands before it.
    #[error(transparent)]
    Pooler(PoolerError),
    /// It answers one connection and no second.
    #[error("the actors need several connections at once")]
    NoSecondConnection(#[source] SessionError),
    /// The actors did not start.
    #[error("the actors did not start")]
    Start(#[source] StartError),
}

impl From<SessionError> for SetupError {
    fn from(error: SessionError) -> Self {
        match error {
            SessionError::Pooler(pooler) => Self::Pooler(pooler),
            SessionError::Unreachable(source) => Self::Unreachable(source),
            error @ SessionError::NoSecondConnection(_) => Self::NoSecondConnection(error),
        }
    }
}

/// Settings of the subsystem.
#[derive(Debug, Clone)]
pub struct SubsystemConfig {
    /// Timing and sizes of the actor tree.
    pub engine: EngineConfig,
    /// Connections of the actors' own pool; `None`: two for each channel and six shared.
    pub pool_size: Option<u32>,
    /// Whether commits wake claimers; off, polling alone finds work.
    pub wake_ups: bool,
    /// How often the listening connection makes sure that it still hears; 30 s by default.
    pub listening_check_interval: Duration,
}

impl Default for SubsystemConfig {
    fn default() -> Self {
        Self {
            engine: EngineConfig::default(),
            pool_size: None,
            wake_ups: true,
            listening_check_interval: Duration::from_secs(30),
        }
    }
}

impl SubsystemConfig {
    /// Proves that these settings can keep the guarantees for `channels`, touching nothing. [`Subsystem::spawn`] does
    /// so first; a host that makes other things before can do so before them.
    ///
    /// # Errors
    /// [`SetupError::Config`] or [`SetupError::PoolTooSmall`], naming the settings that disagree.
    pub fn prove(&self, channels: &Channels) -> Result<(), SetupError> {
        self.engine.prove(&channels.policies())?;
        self.pool_size_for(channels.len()).map(|_| ())
    }

    fn pool_size_for(&self, channels: usize) -> Result<u32, SetupError> {
        let channels_need = u32::try_from(channels).unwrap_or(u32::MAX).saturating_mul(CONNECTIONS_OF_A_CHANNEL);
        let needed = channels_need.saturating_add(SHARED_CONNECTIONS);
        let size = self.pool_size.unwrap_or(needed);
        if size < needed { Err(SetupError::PoolTooSmall { size, channels, needed }) } else { Ok(size) }
    }
}

/// A running subsystem. Dropping it leaves the actors running until the process ends; [`Subsystem::shut_down`] ends them.
#[derive(Debug, Clone)]
pub struct Subsystem {
    engine: Engine,
    channels: Channels,
    waker: Waker,
    pool: PgPool,
    tasks: TaskTracker,
    end: CancellationToken,
}

impl Subsystem {
    /// Starts the subsystem on the database of `options`, over a pool of its own. The database must be migrated.
    ///
    /// # Errors
    /// Settings that cannot keep a guarantee, a database that is unreachable or does not fit, or a pool too small.
    pub async fn spawn(
        options: PgConnectOptions,
        channels: Channels,
        config: SubsystemConfig,
    ) -> Result<Self, SetupError> {
        Self::start(options, channels, config, None).await
    }

    /// The same, linked to an actor of the host, whose supervision then hears of the subsystem's end.
    ///
    /// # Errors
    /// As [`Subsystem::spawn`]; also a parent that is stopping.
    pub async fn spawn_linked(
        options: PgConnectOptions,
        channels: Channels,
        config: SubsystemConfig,
        parent: ActorCell,
    ) -> Result<Self, SetupError> {
        Self::start(options, channels, config, Some(parent)).await
    }

    async fn start(
        options: PgConnectOptions,
        channels: Channels,
        config: SubsystemConfig,
        parent: Option<ActorCell>,
    ) -> Result<Self, SetupError> {
        config.prove(&channels)?;
        let names: Vec<ChannelName> = channels.policies().into_iter().map(|policy| policy.name).collect();
        let pool = pool(options, names.len(), &config).await?;
        crate::metrics::describe(&names);

        let reads = Reads::new(pool.clone());
        let engine_channels = channels
            .iter()
            .map(|channel| EngineChannel {
                policy: postrider_actors::ChannelPolicy { name: channel.name(), max_age: channel.max_age() },
                transport: channel.transport(&reads),
            })
            .collect();
        let queue = Arc::new(PgQueue::new(pool.clone()));
        let engine =
            Engine::start(queue, engine_channels, config.engine, parent).await.map_err(|error| match error {
                StartError::Config(error) => SetupError::Config(error),
                error @ StartError::Spawn(_) => SetupError::Start(error),
            })?;

        let (waker, tasks, end) = (Waker::silent(), TaskTracker::new(), CancellationToken::new());
        if config.wake_ups {
            waker.attach(engine.clone());
            tasks.spawn(waker.clone().notify_others(pool.clone(), end.clone()));
            tasks.spawn(waker.clone().listen(pool.clone(), names, config.listening_check_interval, end.clone()));
        }
        // However the tree ends, what serves it ends with it.
        let (watched, cancel) = (engine.clone(), end.clone());
        tasks.spawn(async move {
            watched.ended().await;
            cancel.cancel();
        });
        tasks.close();
        Ok(Self { engine, channels, waker, pool, tasks, end })
    }

    /// Records events and, once they are committed, wakes the claimers.
    pub fn recorder(&self) -> Recorder {
        Recorder::waking(self.channels.clone(), self.waker.clone())
    }

    /// Every actor's health at this moment, without asking any of them.
    pub fn health(&self) -> Health {
        Health { tree: self.engine.health(), hears_other_processes: self.waker.is_listening() }
    }

    /// Waits until the actors have ended, in order or not.
    pub async fn ended(&self) {
        self.engine.ended().await;
    }

    /// Stops claiming, lets attempts finish up to the shutdown deadline, records them, gives unstarted leases back, ends
    /// every actor and closes the pool. Bounded and idempotent.
    pub async fn shut_down(&self) -> ShutdownReport {
        let report = self.engine.shut_down().await;
        self.end.cancel();
        self.tasks.wait().await;
        // A connection to a server that is gone may never close; the process need not wait for it.
        let _ = tokio::time::timeout(Duration::from_secs(2), self.pool.close()).await;
        report
    }

    /// Ends one actor as a crash would: for tests of supervision and for chaos.
    pub fn kill(&self, child: &ChildId) {
        self.engine.kill(child);
    }
}

/// The subsystem's health at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Health {
    /// Every actor and channel.
    pub tree: TreeHealth,
    /// Whether commits of other processes are heard of at once; where not, the poll finds them within a second.
    pub hears_other_processes: bool,
}

async fn pool(options: PgConnectOptions, channels: usize, config: &SubsystemConfig) -> Result<PgPool, SetupError> {
    let size = config.pool_size_for(channels)?;
    let timeout = config.engine.queue_timeout;
    // Nothing is prepared before it is known that the session lasts.
    let mut connection = queue::connect(&options, timeout).await?;
    check_schema(&mut connection).await?;
    let _ = connection.close().await;
    Ok(queue::pool_options(timeout).max_connections(size).connect_lazy_with(queue::connect_options(options)))
}
