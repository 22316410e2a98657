//! Which relay is tried first.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// How long a relay that could not be used is tried last.
pub(super) const TRIED_LAST: Duration = Duration::from_secs(30);

/// When each relay last failed. By the process's own monotonic clock, and forgotten with the process.
pub(super) struct Standing {
    failed_at: Mutex<Vec<Option<Instant>>>,
}

impl Standing {
    pub(super) fn new(relays: usize) -> Self {
        Self { failed_at: Mutex::new(vec![None; relays]) }
    }

    /// The relays in the order of preference, those that failed of late after all others.
    pub(super) fn order(&self) -> Vec<usize> {
        let failed_at = self.lock();
        let mut order: Vec<usize> = (0..failed_at.len()).collect();
        order.sort_by_key(|relay| failed_at[*relay].is_some_and(is_recent)); // stable
        order
    }

    /// It could not be used. Whether that is new.
    pub(super) fn failed(&self, relay: usize) -> bool {
        let before = self.lock()[relay].replace(Instant::now());
        !before.is_some_and(is_recent)
    }

    /// It took part in a transaction.
    pub(super) fn worked(&self, relay: usize) {
        self.lock()[relay] = None;
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Option<Instant>>> {
        self.failed_at.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_recent(failed_at: Instant) -> bool {
    failed_at.elapsed() < TRIED_LAST
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_relay_that_failed_is_tried_last_for_thirty_seconds() {
        let standing = Standing::new(3);
        assert_eq!(standing.order(), [0, 1, 2]);
        assert!(standing.failed(0));
        assert_eq!(standing.order(), [1, 2, 0]);
        advance(TRIED_LAST - Duration::from_millis(1)).await;
        assert!(!standing.failed(0), "known already");
        assert!(standing.failed(1));
        assert_eq!(standing.order(), [2, 0, 1]);
        advance(TRIED_LAST).await;
        assert_eq!(standing.order(), [0, 1, 2]);
        assert!(standing.failed(0));
        standing.worked(0);
        assert_eq!(standing.order(), [0, 1, 2]);
    }
}
