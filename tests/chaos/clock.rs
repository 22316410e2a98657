//! One monotonic clock of the run.

use std::time::{Duration, Instant};

#[derive(Debug, Clone, Copy)]
pub struct Clock(Instant);

impl Clock {
    pub fn start() -> Self {
        Self(Instant::now())
    }

    pub fn now(&self) -> Duration {
        self.0.elapsed()
    }
}
