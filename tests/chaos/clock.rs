//! One monotonic clock of the run, the same in all its processes.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// When the run began, since the machine did.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Clock(Duration);

impl Clock {
    pub fn start() -> Self {
        Self(since_boot())
    }

    pub fn now(&self) -> Duration {
        since_boot().saturating_sub(self.0)
    }
}

fn since_boot() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: it writes to `time`, which lives on this stack.
    assert_eq!(unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) }, 0);
    Duration::new(time.tv_sec.try_into().unwrap(), time.tv_nsec.try_into().unwrap())
}
