//! The engine's settings, and the proof at start that they can keep the guarantees.

use std::num::{NonZeroU32, NonZeroUsize};
use std::time::Duration;

use crate::backoff::{Backoff, Jitter};
use crate::ports::{ChannelPolicy, Retention};

/// How often a child may be restarted before its channel is reported as down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RestartIntensity {
    /// More than this many restarts within `within` is too many; 5 by default.
    pub restarts: u32,
    /// The window; 60 s by default.
    pub within: Duration,
    /// The wait before the first restart; it doubles with each restart in the window. 50 ms by default.
    pub first_wait: Duration,
    /// The longest wait; also the pace at which a child past the limit is tried again. 10 s by default.
    pub cap: Duration,
}

impl Default for RestartIntensity {
    fn default() -> Self {
        Self {
            restarts: 5,
            within: Duration::from_secs(60),
            first_wait: Duration::from_millis(50),
            cap: Duration::from_secs(10),
        }
    }
}

/// Timing and sizes of the actor tree. The defaults keep every guarantee; [`EngineConfig::prove`] checks any others.
#[derive(Debug, Clone)]
pub struct EngineConfig {
    /// The time of a claim; 60 s by default.
    pub lease: Duration,
    /// The time of one attempt; 10 s by default.
    pub send_timeout: Duration,
    /// Time kept after an attempt for recording it within the lease; 10 s by default.
    pub recording_margin: Duration,
    /// The deadline of each call to the queue; 5 s by default.
    pub queue_timeout: Duration,
    /// The deadline of one pass of cleanup, which may end a key with very many deliveries at once; 60 s by default.
    pub cleanup_timeout: Duration,
    /// How long an idle claimer waits before it looks again; 1 s by default.
    pub poll_interval: Duration,
    /// Attempts that one sender has under way at most; 1 by default. A channel has two senders.
    pub slots_per_sender: NonZeroUsize,
    /// The most that one claim or one recording covers; 500 by default.
    pub batch: NonZeroUsize,
    /// The longest a shutdown takes before what is under way is aborted; 15 s by default.
    pub shutdown_deadline: Duration,
    /// Waits between attempts.
    pub backoff: Backoff,
    /// The spread of waits and polls.
    pub jitter: Jitter,
    /// How long finished deliveries are kept.
    pub retention: Retention,
    /// The wait between passes of cleanup; 60 s by default.
    pub cleanup_interval: Duration,
    /// The wait between counts of what is pending; 30 s by default.
    pub gauge_interval: Duration,
    /// The least wait between audits; 5 min by default. The first comes with the gauge's second count.
    pub audit_interval: Duration,
    /// What has waited for a claim for longer than this is late to an audit; 60 s by default.
    pub audit_older_than: Duration,
    /// The most rows, or keys, that each check of an audit looks at; 10,000 by default.
    pub audit_rows: NonZeroU32,
    /// Limits restarts.
    pub restart_intensity: RestartIntensity,
}

impl Default for EngineConfig {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(60),
            send_timeout: Duration::from_secs(10),
            recording_margin: Duration::from_secs(10),
            queue_timeout: Duration::from_secs(5),
            cleanup_timeout: Duration::from_secs(60),
            poll_interval: Duration::from_secs(1),
            slots_per_sender: NonZeroUsize::MIN,
            batch: const { NonZeroUsize::new(500).unwrap() },
            shutdown_deadline: Duration::from_secs(15),
            backoff: Backoff::default(),
            jitter: Jitter::default(),
            retention: Retention::default(),
            cleanup_interval: Duration::from_secs(60),
            gauge_interval: Duration::from_secs(30),
            audit_interval: Duration::from_secs(300),
            audit_older_than: Duration::from_secs(60),
            audit_rows: const { NonZeroU32::new(10_000).unwrap() },
            restart_intensity: RestartIntensity::default(),
        }
    }
}

/// Settings under which a guarantee could not be kept; each names the settings that disagree.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// An outcome could come after its lease.
    #[error(
        "send timeout ({send_timeout:?}) + recording margin ({recording_margin:?}) must be shorter than the lease ({lease:?})"
    )]
    SendOutlivesLease {
        /// The send timeout.
        send_timeout: Duration,
        /// The recording margin.
        recording_margin: Duration,
        /// The lease.
        lease: Duration,
    },
    /// A recording could take longer than the time kept for it.
    #[error("queue timeout ({queue_timeout:?}) must not be longer than the recording margin ({recording_margin:?})")]
    RecordingOutlivesMargin {
        /// The queue timeout.
        queue_timeout: Duration,
        /// The recording margin.
        recording_margin: Duration,
    },
    /// A shutdown would abort attempts that are within their time.
    #[error("shutdown deadline ({shutdown_deadline:?}) must not be shorter than the send timeout ({send_timeout:?})")]
    ShutdownCutsSends {
        /// The shutdown deadline.
        shutdown_deadline: Duration,
        /// The send timeout.
        send_timeout: Duration,
    },
    /// A retry could be scheduled past the channel's end.
    #[error("backoff cap ({cap:?}) must not be longer than MAX_AGE of channel {channel} ({max_age:?})")]
    BackoffOutlivesMaxAge {
        /// The backoff's cap.
        cap: Duration,
        /// Which channel.
        channel: String,
        /// Its MAX_AGE.
        max_age: Duration,
    },
    /// The backoff could not start below its cap.
    #[error("first backoff ({first:?}) must not be longer than the backoff cap ({cap:?})")]
    BackoffStartsAboveCap {
        /// The first bound.
        first: Duration,
        /// The cap.
        cap: Duration,
    },
    /// A setting that must be longer than nothing.
    #[error("{setting} must be longer than zero")]
    Zero {
        /// Which setting.
        setting: &'static str,
    },
    /// Two channels of one name.
    #[error("channel {channel} is registered twice")]
    DuplicateChannel {
        /// Which name.
        channel: String,
    },
}

impl EngineConfig {
    /// Proves that these settings can keep the guarantees for `channels`.
    ///
    /// # Errors
    /// The first pair of settings that disagree, or a channel that is registered twice.
    pub fn prove(&self, channels: &[ChannelPolicy]) -> Result<(), ConfigError> {
        for (setting, value) in [
            ("lease", self.lease),
            ("send timeout", self.send_timeout),
            ("recording margin", self.recording_margin),
            ("queue timeout", self.queue_timeout),
            ("cleanup timeout", self.cleanup_timeout),
            ("poll interval", self.poll_interval),
            ("first backoff", self.backoff.first),
            ("cleanup interval", self.cleanup_interval),
            ("gauge interval", self.gauge_interval),
            ("audit interval", self.audit_interval),
            ("restart window", self.restart_intensity.within),
            ("first restart wait", self.restart_intensity.first_wait),
        ] {
            if value.is_zero() {
                return Err(ConfigError::Zero { setting });
            }
        }
        let Self { lease, send_timeout, recording_margin, queue_timeout, shutdown_deadline, .. } = *self;
        if send_timeout.saturating_add(recording_margin) >= lease {
            return Err(ConfigError::SendOutlivesLease { send_timeout, recording_margin, lease });
        }
        if queue_timeout > recording_margin {
            return Err(ConfigError::RecordingOutlivesMargin { queue_timeout, recording_margin });
        }
        if shutdown_deadline < send_timeout {
            return Err(ConfigError::ShutdownCutsSends { shutdown_deadline, send_timeout });
        }
        let Backoff { first, cap } = self.backoff;
        if first > cap {
            return Err(ConfigError::BackoffStartsAboveCap { first, cap });
        }
        for (index, channel) in channels.iter().enumerate() {
            if channels[..index].iter().any(|earlier| earlier.name == channel.name) {
                return Err(ConfigError::DuplicateChannel { channel: channel.name.to_string() });
            }
            if cap > channel.max_age {
                let (channel, max_age) = (channel.name.to_string(), channel.max_age);
                return Err(ConfigError::BackoffOutlivesMaxAge { cap, channel, max_age });
            }
        }
        Ok(())
    }

    /// The last age of a lease at which an attempt may still begin.
    pub(crate) fn latest_start(&self) -> Duration {
        self.lease.saturating_sub(self.send_timeout).saturating_sub(self.recording_margin)
    }
}
