//! How fast the demo goes: everything follows from the send timeout, and the proof at start holds for all of it.

use std::num::NonZeroUsize;
use std::time::Duration;

use postrider_actors::{Backoff, EngineConfig};

/// Attempts that one of the two senders has under way at most: two that hang leave room for six others.
const SLOTS_PER_SENDER: NonZeroUsize = const { NonZeroUsize::new(4).unwrap() };
/// From when all sessions have ended: what the longest way, past a lease, may take beyond that lease.
const PATIENCE: Duration = Duration::from_secs(14);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pace {
    pub(super) send_timeout: Duration,
    pub(super) margin: Duration,
    pub(super) lease: Duration,
    pub(super) slow_answer: Duration,
    /// Whole seconds, as Retry-After counts.
    pub(super) retry_after: Duration,
    pub(super) backoff: Backoff,
}

impl Pace {
    pub(super) fn of(send_timeout: Duration) -> Self {
        let margin = (send_timeout * 2 / 5).clamp(Duration::from_secs(2), Duration::from_secs(4));
        Self {
            send_timeout,
            margin,
            lease: send_timeout + margin + Duration::from_secs(2),
            slow_answer: (send_timeout * 3 / 20).max(Duration::from_millis(100)),
            retry_after: Duration::from_secs(if send_timeout < Duration::from_secs(5) { 1 } else { 2 }),
            backoff: Backoff { first: Duration::from_millis(500), cap: Duration::from_secs(4) },
        }
    }

    pub(super) fn engine(&self) -> EngineConfig {
        EngineConfig {
            lease: self.lease,
            send_timeout: self.send_timeout,
            recording_margin: self.margin,
            queue_timeout: self.margin,
            slots_per_sender: SLOTS_PER_SENDER,
            shutdown_deadline: self.send_timeout + Duration::from_secs(2),
            backoff: self.backoff,
            ..EngineConfig::default()
        }
    }

    /// Slots of both senders.
    pub(super) const fn slots(&self) -> usize {
        2 * SLOTS_PER_SENDER.get()
    }

    /// How long the deliveries are waited for.
    pub(super) fn patience(&self) -> Duration {
        self.lease + PATIENCE
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channels::BackchannelLogout;

    #[test]
    fn the_demos_timing_keeps_the_guarantees_at_any_send_timeout() {
        for seconds in [1, 2, 10, 30] {
            let pace = Pace::of(Duration::from_secs(seconds));
            let channel = postrider_actors::ChannelPolicy {
                name: BackchannelLogout::channel_name(),
                max_age: Duration::from_secs(3600),
            };
            assert_eq!(pace.engine().prove(&[channel]), Ok(()), "{seconds} s");
            assert!(pace.slow_answer < pace.send_timeout);
        }
    }
}
