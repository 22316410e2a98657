//! What was seen of a run: by hosts, by receivers, by workers, by operators, and what the tables went through.

use std::time::Duration;

use crate::ids::{ChannelName, ClaimToken, DeliveryId};
use crate::outcome::{Settled, Status};

/// Time since the run began, by one monotonic clock for all who log.
pub type Moment = Duration;

/// Time since any fixed point, by the database's clock. Compared with its own kind alone.
pub type DatabaseTime = Duration;

/// Everything that was logged.
#[derive(Debug, Clone, Default)]
pub struct History {
    /// By hosts.
    pub commits: Vec<Commit>,
    /// By receivers, outside of what is tested.
    pub receipts: Vec<Receipt>,
    /// Every change of every row, those of one ordering key in their order.
    pub transitions: Vec<Transition>,
    /// By workers.
    pub settlements: Vec<Settlement>,
    /// By operators.
    pub acts: Vec<OperatorAct>,
    /// By whoever did the harm.
    pub faults: Vec<Fault>,
    /// When the tables were last read.
    pub ended: DatabaseTime,
}

/// What a host knows of its transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fate {
    /// The commit was acknowledged.
    Committed,
    /// It was rolled back, or never asked to commit.
    RolledBack,
    /// The connection broke in the commit: it is there wholly or not at all.
    Unknown,
}

/// One delivery that a host recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commit {
    /// Which.
    pub delivery: DeliveryId,
    /// Its channel.
    pub channel: ChannelName,
    /// Its ordering key.
    pub key: Option<String>,
    /// From one counter for all hosts, drawn while the key was locked: ascends in commit order within the key.
    pub place: u64,
    /// Of its transaction.
    pub fate: Fate,
}

/// A sender: the number of its replica, a new one at each start of a process, and its own within it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Worker {
    /// Which start of which process.
    pub replica: u32,
    /// Which sender in it.
    pub sender: u32,
}

/// What the receiver answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Answer {
    /// It has it.
    Success,
    /// Later.
    Retry,
    /// Never.
    Refuse,
    /// Nothing that could be read in time.
    Nothing,
}

/// One request, read to its end by the receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Receipt {
    /// Which delivery.
    pub delivery: DeliveryId,
    /// Number of the attempt, as the worker knew it.
    pub attempt: u32,
    /// Who sent it.
    pub worker: Worker,
    /// A digest of what must be the same in every attempt.
    pub content: u64,
    /// When it had been read.
    pub at: Moment,
    /// What was answered.
    pub answer: Answer,
}

/// The row of a delivery between two changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowState {
    /// Its status.
    pub status: Status,
    /// Who holds it.
    pub token: Option<ClaimToken>,
    /// Attempts counted.
    pub attempt: u32,
    /// When it may be claimed: due, or the end of the lease while it is held.
    pub due: DatabaseTime,
    /// Whether it is the head of its key, or has none.
    pub claimable: bool,
}

/// One change of one row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transition {
    /// Which.
    pub delivery: DeliveryId,
    /// When.
    pub at: DatabaseTime,
    /// `None`: it was inserted.
    pub before: Option<RowState>,
    /// `None`: it was deleted.
    pub after: Option<RowState>,
}

/// What a worker was told of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settlement {
    /// Which delivery.
    pub delivery: DeliveryId,
    /// Under which token.
    pub token: ClaimToken,
    /// What came of it.
    pub settled: Settled,
}

/// What an operator asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Act {
    /// Due now, and MAX_AGE starts over.
    Retry,
    /// Called off.
    Cancel,
}

/// What an operator knows of an act.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ActResult {
    /// It was done.
    Done,
    /// It was not allowed.
    Refused,
    /// The connection broke.
    Unknown,
}

/// One act of an operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OperatorAct {
    /// On which delivery.
    pub delivery: DeliveryId,
    /// What.
    pub act: Act,
    /// What came of it.
    pub result: ActResult,
}

/// Whose work a fault can have spoilt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scope {
    /// One sender's.
    Sender(Worker),
    /// All that a replica was about to claim or to record.
    Claimer(u32),
    /// All of a replica's.
    Replica(u32),
    /// Everybody's.
    Database,
    /// Everybody's, as answers were not heard.
    Receiver,
}

impl Scope {
    /// Whether what `worker` did can have been spoilt.
    pub fn covers(self, worker: Worker) -> bool {
        match self {
            Self::Sender(one) => one == worker,
            Self::Claimer(replica) | Self::Replica(replica) => replica == worker.replica,
            Self::Database | Self::Receiver => true,
        }
    }
}

/// One deliberate harm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Its name in the report.
    pub kind: String,
    /// Whom it hit.
    pub scope: Scope,
    /// When it began.
    pub from: Moment,
    /// When its direct effect ended.
    pub until: Moment,
}
