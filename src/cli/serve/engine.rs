//! The settings of the actors.

use std::num::NonZeroUsize;
use std::time::Duration;

use clap::{Args, ValueEnum};
use postrider_actors::{Backoff, ConfigError, EngineConfig, Retention};

use crate::cli::duration;
use crate::cli::failure::{Exit, Failure};
use crate::subsystem::{SetupError, SubsystemConfig};

/// A switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Switch {
    On,
    Off,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Timing and sizes")]
pub(super) struct EngineArguments {
    /// Attempts that each of a channel's two senders has under way at most.
    #[arg(long, env = "POSTRIDER_SLOTS_PER_SENDER", value_name = "N", default_value = "1")]
    slots_per_sender: NonZeroUsize,
    /// The most that one claim or one recording covers.
    #[arg(long, env = "POSTRIDER_BATCH", value_name = "N", default_value = "500")]
    batch: NonZeroUsize,
    /// How long a claim lasts: when a process dies, others send its deliveries after this.
    #[arg(long, env = "POSTRIDER_LEASE", value_name = "TIME", default_value = "60s", value_parser = duration::parse)]
    lease: Duration,
    /// The longest an attempt takes.
    #[arg(long, env = "POSTRIDER_SEND_TIMEOUT", value_name = "TIME", default_value = "10s", value_parser = duration::parse)]
    send_timeout: Duration,
    /// Time kept within the lease for recording an attempt.
    #[arg(long, env = "POSTRIDER_RECORDING_MARGIN", value_name = "TIME", default_value = "10s", value_parser = duration::parse)]
    recording_margin: Duration,
    /// The longest a call to the database takes.
    #[arg(long, env = "POSTRIDER_QUEUE_TIMEOUT", value_name = "TIME", default_value = "5s", value_parser = duration::parse)]
    queue_timeout: Duration,
    /// How long an idle claimer waits before it looks for work that nobody told it of.
    #[arg(long, env = "POSTRIDER_POLL_INTERVAL", value_name = "TIME", default_value = "1s", value_parser = duration::parse)]
    poll_interval: Duration,
    /// The longest a shutdown waits for attempts under way.
    #[arg(long, env = "POSTRIDER_SHUTDOWN_DEADLINE", value_name = "TIME", default_value = "15s", value_parser = duration::parse)]
    shutdown_deadline: Duration,
    /// The bound of the wait after a first attempt; it doubles with each.
    #[arg(long, env = "POSTRIDER_BACKOFF_FIRST", value_name = "TIME", default_value = "10s", value_parser = duration::parse)]
    backoff_first: Duration,
    /// The largest bound of the wait between attempts.
    #[arg(long, env = "POSTRIDER_BACKOFF_CAP", value_name = "TIME", default_value = "1h", value_parser = duration::parse)]
    backoff_cap: Duration,
    /// How long succeeded deliveries are kept.
    #[arg(long, env = "POSTRIDER_KEEP_SUCCEEDED", value_name = "TIME", default_value = "7d", value_parser = duration::parse)]
    keep_succeeded: Duration,
    /// How long failed and cancelled deliveries are kept; a failed one also holds back its ordering key for so long.
    #[arg(long, env = "POSTRIDER_KEEP_FAILED", value_name = "TIME", default_value = "30d", value_parser = duration::parse)]
    keep_failed: Duration,
    /// Connections of the actors' own. Default: six, and two for each channel.
    #[arg(long, env = "POSTRIDER_ACTORS_POOL_SIZE", value_name = "N")]
    actors_pool_size: Option<u32>,
    /// Whether commits wake claimers at once; off, they poll.
    #[arg(long, env = "POSTRIDER_WAKE_UPS", value_name = "on|off", default_value = "on", hide_possible_values = true)]
    wake_ups: Switch,
}

impl EngineArguments {
    pub(super) fn config(&self) -> SubsystemConfig {
        let engine = EngineConfig {
            lease: self.lease,
            send_timeout: self.send_timeout,
            recording_margin: self.recording_margin,
            queue_timeout: self.queue_timeout,
            poll_interval: self.poll_interval,
            slots_per_sender: self.slots_per_sender,
            batch: self.batch,
            shutdown_deadline: self.shutdown_deadline,
            backoff: Backoff { first: self.backoff_first, cap: self.backoff_cap },
            retention: Retention { succeeded: self.keep_succeeded, failed: self.keep_failed },
            ..EngineConfig::default()
        };
        SubsystemConfig {
            engine,
            pool_size: self.actors_pool_size,
            wake_ups: self.wake_ups == Switch::On,
            ..SubsystemConfig::default()
        }
    }
}

/// Settings that cannot keep a guarantee, with the flags that set them.
pub(super) fn refused(error: &SetupError) -> Failure {
    let flags = match error {
        SetupError::Config(ConfigError::SendOutlivesLease { .. }) => "--send-timeout, --recording-margin or --lease",
        SetupError::Config(ConfigError::RecordingOutlivesMargin { .. }) => "--queue-timeout or --recording-margin",
        SetupError::Config(ConfigError::ShutdownCutsSends { .. }) => "--shutdown-deadline or --send-timeout",
        SetupError::Config(ConfigError::BackoffOutlivesMaxAge { .. }) => "--backoff-cap",
        SetupError::Config(ConfigError::BackoffStartsAboveCap { .. }) => "--backoff-first or --backoff-cap",
        SetupError::PoolTooSmall { .. } => "--actors-pool-size",
        _ => "the setting that is named",
    };
    Failure::new(Exit::Usage, "these settings cannot keep the guarantees")
        .because(error)
        .advise(format!("change {flags}"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Only {
        #[command(flatten)]
        engine: EngineArguments,
    }

    #[test]
    fn what_nobody_sets_is_the_engines_own_default() {
        let set = Only::try_parse_from(["postrider"]).unwrap().engine.config();
        assert_eq!(format!("{set:?}"), format!("{:?}", SubsystemConfig::default()));
    }
}
