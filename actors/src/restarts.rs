//! When a child that ended is started again: decided in plain code, applied by the supervisor.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

use crate::config::RestartIntensity;

/// What follows from a child's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Restart {
    /// How long to wait first.
    pub(crate) wait: Duration,
    /// More restarts than the intensity allows: the child counts as down meanwhile.
    pub(crate) past_limit: bool,
}

/// The restarts of one child that still count.
#[derive(Debug, Default)]
pub(crate) struct RestartWindow(VecDeque<Instant>);

impl RestartWindow {
    /// Counts one end of the child, now.
    pub(crate) fn ended(&mut self, intensity: &RestartIntensity) -> Restart {
        let now = Instant::now();
        self.0.retain(|at| now.duration_since(*at) < intensity.within);
        self.0.push_back(now);
        let in_window = u32::try_from(self.0.len()).unwrap_or(u32::MAX);
        if in_window > intensity.restarts {
            // Bounded however long it goes on; the newest count.
            self.0.pop_front();
            return Restart { wait: intensity.cap, past_limit: true };
        }
        let doublings = in_window.saturating_sub(1).min(31);
        let wait = intensity.first_wait.saturating_mul(1 << doublings).min(intensity.cap);
        Restart { wait, past_limit: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_wait_doubles_and_past_the_limit_stays_at_the_cap_until_the_window_is_quiet() {
        let intensity = RestartIntensity::default();
        let mut window = RestartWindow::default();
        let waits: Vec<_> = (0..7).map(|_| window.ended(&intensity)).collect();
        let millis: Vec<_> = waits.iter().map(|restart| restart.wait.as_millis()).collect();
        assert_eq!(millis, [50, 100, 200, 400, 800, 10_000, 10_000]);
        assert_eq!(waits.iter().filter(|restart| restart.past_limit).count(), 2);

        // Still at the cap's pace for longer than the window: still past the limit.
        for _ in 0..20 {
            tokio::time::advance(intensity.cap).await;
            assert_eq!(window.ended(&intensity), Restart { wait: intensity.cap, past_limit: true });
        }

        tokio::time::advance(intensity.within).await;
        assert_eq!(window.ended(&intensity), Restart { wait: intensity.first_wait, past_limit: false });
    }
}
