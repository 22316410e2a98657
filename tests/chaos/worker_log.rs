//! What a replica writes down about its own work, one line each, so that it outlives the process by SIGKILL.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use postrider_actors::{Ended, Lease, Outcome, Settled, Verdict};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::clock::Clock;

/// One line.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Line {
    /// The transport was called.
    Began { delivery: Uuid, token: Uuid, attempt: u32 },
    /// It returned. `answered`: with the receiver's status, whatever that was.
    Ended { token: Uuid, succeeded: bool, answered: bool },
    /// It was dropped in the middle.
    Dropped { token: Uuid },
    /// The queue was asked to record this.
    Recording { delivery: Uuid, token: Uuid, verdict: Word },
    /// What came of it; without this line nothing is known.
    Settled { delivery: Uuid, token: Uuid, verdict: Word, settled: Came, replica: u32, at: Duration },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Word {
    Succeeded,
    Retry,
    Defer,
    Failed,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Came {
    /// The row then had this status.
    Recorded(String),
    LeaseLost,
    EffectFailed,
    Unrecorded,
}

impl From<Verdict> for Word {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Succeeded => Self::Succeeded,
            Verdict::Retry { .. } => Self::Retry,
            Verdict::Defer { .. } => Self::Defer,
            Verdict::Failed { .. } => Self::Failed,
        }
    }
}

impl From<Settled> for Came {
    fn from(settled: Settled) -> Self {
        match settled {
            Settled::Recorded(status) => Self::Recorded(status.to_string()),
            Settled::LeaseLost => Self::LeaseLost,
            Settled::EffectFailed => Self::EffectFailed,
            Settled::Unrecorded => Self::Unrecorded,
        }
    }
}

#[derive(Clone)]
pub struct WorkerLog {
    file: Arc<File>,
    replica: u32,
    clock: Clock,
}

impl WorkerLog {
    pub fn open(path: &Path, replica: u32, clock: Clock) -> Self {
        let file = OpenOptions::new().create(true).append(true).open(path).unwrap();
        Self { file: Arc::new(file), replica, clock }
    }

    pub const fn replica(&self) -> u32 {
        self.replica
    }

    fn write(&self, line: &Line) {
        let mut text = serde_json::to_string(line).unwrap();
        text.push('\n');
        (&*self.file).write_all(text.as_bytes()).unwrap();
    }

    pub fn recording<E>(&self, ended: &Ended<E>) {
        let (delivery, token) = (ended.delivery.as_uuid(), ended.token.as_uuid());
        self.write(&Line::Recording { delivery, token, verdict: ended.verdict.into() });
    }

    pub fn settled<E>(&self, ended: &Ended<E>, settled: Settled) {
        let (delivery, token) = (ended.delivery.as_uuid(), ended.token.as_uuid());
        let (verdict, settled) = (ended.verdict.into(), settled.into());
        self.write(&Line::Settled { delivery, token, verdict, settled, replica: self.replica, at: self.clock.now() });
    }
}

/// The lines of one replica; the last one may have been cut.
pub fn read(path: &Path) -> Vec<Line> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// An attempt under way, which says so when it is dropped.
pub struct Attempt<'a> {
    log: &'a WorkerLog,
    token: Uuid,
    over: bool,
}

impl<'a> Attempt<'a> {
    pub fn begins(log: &'a WorkerLog, lease: &Lease) -> Self {
        let (delivery, token) = (lease.delivery.id.as_uuid(), lease.token.as_uuid());
        log.write(&Line::Began { delivery, token, attempt: lease.attempt });
        Self { log, token, over: false }
    }

    pub fn ends(mut self, outcome: &Outcome) {
        self.over = true;
        let answered = match outcome {
            Outcome::Succeeded => true,
            Outcome::Retry { reason, .. } | Outcome::Deferred { reason, .. } | Outcome::Failed { reason } => {
                matches!(reason, postrider_actors::Reason::Code(_))
            }
        };
        let succeeded = *outcome == Outcome::Succeeded;
        self.log.write(&Line::Ended { token: self.token, succeeded, answered });
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        if !self.over {
            self.log.write(&Line::Dropped { token: self.token });
        }
    }
}
