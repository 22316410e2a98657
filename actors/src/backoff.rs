//! How long a delivery waits after an attempt that is worth repeating.

use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use crate::outcome::{Outcome, Verdict};

/// Full jitter under a bound that starts at `first` and doubles per attempt up to `cap`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// The bound after the first attempt; 10 s by default.
    pub first: Duration,
    /// The largest bound; 1 h by default. No longer than any channel's MAX_AGE.
    pub cap: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { first: Duration::from_secs(10), cap: Duration::from_secs(3600) }
    }
}

impl Backoff {
    /// The longest wait after attempt number `attempt` (from 1; 0 is taken for 1): `min(first * 2^(attempt-1), cap)`.
    /// No errors: saturates.
    pub fn bound(&self, attempt: u32) -> Duration {
        let doublings = attempt.saturating_sub(1).min(63);
        let factor = 1u64 << doublings;
        let nanos = self.first.as_nanos().saturating_mul(u128::from(factor));
        let cap = self.cap.as_nanos();
        if nanos >= cap {
            return self.cap;
        }
        u64::try_from(nanos).map_or(self.cap, Duration::from_nanos)
    }

    /// The wait after attempt number `attempt`: above zero and at most [`Backoff::bound`].
    /// `jitter` in [0, 1) is drawn by the caller, so this stays pure; out of range it is clamped.
    pub fn wait(&self, attempt: u32, jitter: f64) -> Duration {
        let bound = self.bound(attempt);
        let share = 1.0 - if jitter.is_finite() { jitter.clamp(0.0, 1.0) } else { 0.0 };
        bound.mul_f64(share).clamp(Duration::from_millis(1).min(bound), bound)
    }

    /// Decides the wait that an outcome means: a receiver's Retry-After can only lengthen the backoff.
    /// `attempt` counts from 1 since the delivery was created or last retried by an operator.
    pub fn verdict(&self, outcome: Outcome, attempt: u32, jitter: &Jitter) -> Verdict {
        match outcome {
            Outcome::Succeeded => Verdict::Succeeded,
            Outcome::Retry { reason, not_before } => {
                let wait = self.wait(attempt, jitter.draw()).max(not_before.unwrap_or_default());
                Verdict::Retry { reason, wait }
            }
            Outcome::Deferred { reason, wait } => Verdict::Defer { reason, wait },
            Outcome::Failed { reason } => Verdict::Failed { reason },
        }
    }
}

/// Where the spread of waits and polls comes from; tests put in what they need.
#[derive(Clone)]
pub struct Jitter(Arc<dyn Fn() -> f64 + Send + Sync>);

impl Jitter {
    /// Draws by `draw`, which answers in [0, 1).
    pub fn from_fn(draw: impl Fn() -> f64 + Send + Sync + 'static) -> Self {
        Self(Arc::new(draw))
    }

    /// A number in [0, 1).
    pub fn draw(&self) -> f64 {
        (self.0)()
    }
}

impl Default for Jitter {
    /// Independent draws from the system's randomness (53 of the random bits of a UUIDv4).
    fn default() -> Self {
        Self::from_fn(|| {
            let bits = Uuid::new_v4().as_u128() as u64 & ((1 << 53) - 1);
            bits as f64 / (1u64 << 53) as f64
        })
    }
}

impl std::fmt::Debug for Jitter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Jitter")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn c46_the_wait_stays_above_zero_and_within_its_bound_for_any_attempt_number(attempt: u32, jitter in -1.0f64..2.0) {
            let backoff = Backoff::default();
            let wait = backoff.wait(attempt, jitter);
            prop_assert!(wait > Duration::ZERO);
            prop_assert!(wait <= backoff.bound(attempt));
            prop_assert!(backoff.bound(attempt) <= backoff.cap);
        }

        #[test]
        fn the_bound_never_shrinks_as_attempts_grow(attempt in 0u32..u32::MAX) {
            let backoff = Backoff::default();
            prop_assert!(backoff.bound(attempt) <= backoff.bound(attempt + 1));
        }
    }

    #[test]
    fn the_bound_starts_at_ten_seconds_and_doubles_to_an_hour() {
        let bounds: Vec<u64> = [0, 1, 2, 3, 9, 10, 31, 32, 63, 64, 65, u32::MAX]
            .into_iter()
            .map(|attempt| Backoff::default().bound(attempt).as_secs())
            .collect();
        assert_eq!(bounds, [10, 10, 20, 40, 2560, 3600, 3600, 3600, 3600, 3600, 3600, 3600]);
    }

    #[test]
    fn drawn_jitter_lies_in_the_unit_interval_and_varies() {
        let jitter = Jitter::default();
        let draws: Vec<f64> = (0..1000).map(|_| jitter.draw()).collect();
        assert!(draws.iter().all(|draw| (0.0..1.0).contains(draw)));
        assert!(draws.iter().any(|draw| *draw < 0.1) && draws.iter().any(|draw| *draw > 0.9));
    }
}
