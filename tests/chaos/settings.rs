//! The timing under which everything happens often, and how large a run is.

use std::num::NonZeroUsize;
use std::time::Duration;

use postrider_actors::{Backoff, EngineConfig, RestartIntensity};

pub const LEASE: Duration = Duration::from_millis(2500);
pub const SEND_TIMEOUT: Duration = Duration::from_millis(800);
pub const BACKOFF_CAP: Duration = Duration::from_secs(1);

/// The proof of timing holds for these as for the defaults. Only the restart budget is not a host's: actors are killed
/// many times a second.
pub fn engine() -> EngineConfig {
    EngineConfig {
        lease: LEASE,
        send_timeout: SEND_TIMEOUT,
        recording_margin: Duration::from_millis(800),
        queue_timeout: Duration::from_millis(800),
        poll_interval: Duration::from_millis(200),
        slots_per_sender: NonZeroUsize::new(4).unwrap(),
        shutdown_deadline: Duration::from_secs(2),
        backoff: Backoff { first: Duration::from_millis(50), cap: BACKOFF_CAP },
        cleanup_interval: Duration::from_secs(1),
        gauge_interval: Duration::from_secs(1),
        restart_intensity: RestartIntensity {
            restarts: 1_000_000,
            first_wait: Duration::from_millis(10),
            cap: Duration::from_millis(50),
            ..RestartIntensity::default()
        },
        ..EngineConfig::default()
    }
}

/// How much of what.
#[derive(Debug, Clone)]
pub struct Size {
    pub seed: u64,
    pub long: bool,
    pub replicas: usize,
    pub hosts: u64,
    pub transactions_per_host: u64,
    pub keys: u64,
    /// Faults go on at least so long.
    pub storm: Duration,
    pub kill_actor_every: Duration,
    pub kill_replica_every: Duration,
    pub freeze_every: Duration,
    pub database_fault_every: Duration,
    pub cut_every: Duration,
}

impl Size {
    /// The short form, or the long one by `POSTRIDER_CHAOS_LONG`; `POSTRIDER_CHAOS_SEED` plays a script again.
    pub fn from_environment() -> Self {
        let seed = std::env::var("POSTRIDER_CHAOS_SEED").ok().filter(|seed| !seed.is_empty());
        let seed = seed.map_or_else(|| uuid::Uuid::new_v4().as_u64_pair().0 >> 32, |seed| seed.parse().unwrap());
        let long = std::env::var("POSTRIDER_CHAOS_LONG").is_ok_and(|long| !long.is_empty() && long != "0");
        if long { Self::long(seed) } else { Self::short(seed) }
    }

    /// A minute or so.
    pub fn short(seed: u64) -> Self {
        Self {
            seed,
            long: false,
            replicas: 3,
            hosts: 6,
            transactions_per_host: 350,
            keys: 200,
            storm: Duration::from_secs(45),
            kill_actor_every: Duration::from_millis(150),
            kill_replica_every: Duration::from_secs(4),
            freeze_every: Duration::from_secs(6),
            database_fault_every: Duration::from_secs(7),
            cut_every: Duration::from_millis(1200),
        }
    }

    /// 10,000 deliveries, 100 processes and 20 postmasters killed, an actor every 50 ms.
    fn long(seed: u64) -> Self {
        Self {
            long: true,
            hosts: 8,
            transactions_per_host: 1250,
            keys: 500,
            storm: Duration::from_secs(330),
            kill_actor_every: Duration::from_millis(50),
            kill_replica_every: Duration::from_secs(3),
            ..Self::short(seed)
        }
    }
}
