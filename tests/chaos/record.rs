//! What was seen from outside while the run went on.

use std::sync::Mutex;
use std::time::Duration;

use serde::Serialize;

use crate::dice::Dice;
use crate::hosts::Commit;
use crate::operator::Act;

/// What a fault can have reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Scope {
    /// The senders of a channel in a replica: which of the two an attempt ran in is not seen from outside.
    Senders {
        replica: u32,
        channel: usize,
    },
    Claimer {
        replica: u32,
    },
    Replica {
        replica: u32,
    },
    Database,
    Receiver,
    /// Nothing that delivers.
    Hosts,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub enum FaultKind {
    SenderKilled,
    ClaimerKilled,
    CleanupOrGaugeKilled,
    SupervisorKilled,
    ReplicaKilled,
    ReplicaFrozen,
    PostmasterKilled,
    DatabaseRestarted,
    SessionsTerminated,
    ConnectionsCut,
    CommitCutBefore,
    CommitCutAfter,
    Stalled,
    ReceiverOut,
}

impl FaultKind {
    pub const ALL: [Self; 14] = [
        Self::SenderKilled,
        Self::ClaimerKilled,
        Self::CleanupOrGaugeKilled,
        Self::SupervisorKilled,
        Self::ReplicaKilled,
        Self::ReplicaFrozen,
        Self::PostmasterKilled,
        Self::DatabaseRestarted,
        Self::SessionsTerminated,
        Self::ConnectionsCut,
        Self::CommitCutBefore,
        Self::CommitCutAfter,
        Self::Stalled,
        Self::ReceiverOut,
    ];
}

impl FaultKind {
    pub const fn name(self) -> &'static str {
        match self {
            Self::SenderKilled => "sender killed",
            Self::ClaimerKilled => "claimer killed",
            Self::CleanupOrGaugeKilled => "cleanup or gauge killed",
            Self::SupervisorKilled => "supervisor killed",
            Self::ReplicaKilled => "replica killed",
            Self::ReplicaFrozen => "replica frozen",
            Self::PostmasterKilled => "postmaster killed",
            Self::DatabaseRestarted => "database restarted",
            Self::SessionsTerminated => "sessions terminated",
            Self::ConnectionsCut => "connections cut",
            Self::CommitCutBefore => "cut before a commit",
            Self::CommitCutAfter => "cut after a commit",
            Self::Stalled => "connections stalled",
            Self::ReceiverOut => "receiver out",
        }
    }
}

#[derive(Debug, Clone, Serialize)]
pub struct Fault {
    pub kind: FaultKind,
    pub scope: Scope,
    pub from: Duration,
    pub until: Duration,
}

#[derive(Default)]
pub struct Log {
    commits: Mutex<Vec<Commit>>,
    acts: Mutex<Vec<Act>>,
    faults: Mutex<Vec<Fault>>,
}

impl Log {
    pub fn commit(&self, commit: Commit) {
        self.commits.lock().unwrap().push(commit);
    }

    pub fn act(&self, act: Act) {
        self.acts.lock().unwrap().push(act);
    }

    pub fn fault(&self, fault: Fault) {
        self.faults.lock().unwrap().push(fault);
    }

    /// One of the last twenty.
    pub fn recent_commit(&self, dice: &mut Dice) -> Option<Commit> {
        let commits = self.commits.lock().unwrap();
        let back = usize::try_from(dice.below(20)).unwrap();
        commits.iter().rev().nth(back).cloned()
    }

    pub fn commits(&self) -> Vec<Commit> {
        self.commits.lock().unwrap().clone()
    }

    pub fn acts(&self) -> Vec<Act> {
        self.acts.lock().unwrap().clone()
    }

    pub fn faults(&self) -> Vec<Fault> {
        self.faults.lock().unwrap().clone()
    }
}
