//! The health of every actor, kept where it can be read even while the tree is broken.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::ids::ChannelName;
use crate::messages::SenderIndex;
use crate::ports::PendingCount;
use crate::vitals::Vitals;

/// One place in the tree; the actor in it may be replaced.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ChildId {
    /// The root.
    Supervisor,
    /// A channel's claimer.
    Claimer(ChannelName),
    /// One of a channel's senders.
    Sender(ChannelName, SenderIndex),
    /// Deletes and abandons by age.
    Cleanup,
    /// Counts what is pending.
    Gauge,
}

impl ChildId {
    /// The channel that it works for.
    pub fn channel(&self) -> Option<&ChannelName> {
        match self {
            Self::Claimer(channel) | Self::Sender(channel, _) => Some(channel),
            Self::Supervisor | Self::Cleanup | Self::Gauge => None,
        }
    }
}

impl fmt::Display for ChildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Supervisor => f.write_str("supervisor"),
            Self::Claimer(channel) => write!(f, "{channel}/claimer"),
            Self::Sender(channel, index) => write!(f, "{channel}/sender {}", index.0),
            Self::Cleanup => f.write_str("cleanup"),
            Self::Gauge => f.write_str("gauge"),
        }
    }
}

/// What an actor is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActorState {
    /// Works, or waits for work.
    Running,
    /// Works, but the queue does not answer.
    DatabaseUnreachable,
    /// Ended, and will be started again shortly.
    Restarting,
    /// Restarted too often; tried again at the longest wait.
    Down,
    /// Finishes what is under way and takes nothing new.
    Draining,
    /// Ended for good.
    Stopped,
}

impl ActorState {
    /// The word in health reports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::DatabaseUnreachable => "database_unreachable",
            Self::Restarting => "restarting",
            Self::Down => "down",
            Self::Draining => "draining",
            Self::Stopped => "stopped",
        }
    }
}

/// Why an actor was restarted: a kind, never its message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RestartReason {
    /// A handler panicked or returned an error.
    Failed,
    /// It was killed.
    Killed,
    /// It handled one message for longer than its longest legal step.
    Stuck,
    /// It stopped without being asked to.
    Stopped,
}

impl RestartReason {
    /// The word in health reports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Killed => "killed",
            Self::Stuck => "stuck",
            Self::Stopped => "stopped",
        }
    }
}

/// One actor at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActorHealth {
    /// Its place in the tree.
    pub child: ChildId,
    /// What it is doing.
    pub state: ActorState,
    /// Restarts since the tree was started.
    pub restarts: u64,
    /// Why it was last restarted.
    pub last_restart: Option<RestartReason>,
    /// Messages that wait for it.
    pub mailbox_depth: usize,
    /// Attempts under way and outcomes not yet recorded; senders only.
    pub in_flight: usize,
    /// Since it last finished a message.
    pub since_progress: Duration,
}

/// A channel at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChannelHealth {
    /// Which channel.
    pub channel: ChannelName,
    /// The worst state among its actors.
    pub state: ActorState,
    /// The gauge's last count; `None` until one succeeded and while counting fails.
    pub pending: Option<PendingCount>,
}

/// The whole tree at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeHealth {
    /// Every actor, the supervisor first.
    pub actors: Vec<ActorHealth>,
    /// Every channel.
    pub channels: Vec<ChannelHealth>,
}

impl TreeHealth {
    /// True while the supervisor runs, no channel is down and the queue answers.
    pub fn is_well(&self) -> bool {
        self.actors.iter().all(|actor| matches!(actor.state, ActorState::Running | ActorState::Restarting))
            && self.channels.iter().all(|channel| channel.state == ActorState::Running)
    }

    /// The actor in this place.
    pub fn actor(&self, child: &ChildId) -> Option<&ActorHealth> {
        self.actors.iter().find(|actor| actor.child == *child)
    }
}

#[derive(Debug)]
struct Entry {
    state: ActorState,
    restarts: u64,
    last_restart: Option<RestartReason>,
    vitals: Arc<Vitals>,
}

#[derive(Debug, Default)]
struct Shown {
    entries: BTreeMap<ChildId, Entry>,
    pending: Vec<PendingCount>,
}

/// Where the tree writes its health and anybody reads it. Locked for moments only, never across an await.
#[derive(Debug, Clone, Default)]
pub(crate) struct Board(Arc<Mutex<Shown>>);

impl Board {
    fn lock(&self) -> MutexGuard<'_, Shown> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn started(&self, child: &ChildId, vitals: &Arc<Vitals>) {
        let mut shown = self.lock();
        match shown.entries.get_mut(child) {
            Some(entry) => {
                entry.vitals = Arc::clone(vitals);
                entry.state = ActorState::Running;
            }
            None => {
                let vitals = Arc::clone(vitals);
                let entry = Entry { state: ActorState::Running, restarts: 0, last_restart: None, vitals };
                shown.entries.insert(child.clone(), entry);
            }
        }
    }

    pub(crate) fn ended(&self, child: &ChildId, reason: RestartReason, state: ActorState) {
        if let Some(entry) = self.lock().entries.get_mut(child) {
            entry.state = state;
            entry.restarts += 1;
            entry.last_restart = Some(reason);
        }
    }

    pub(crate) fn set_state(&self, child: &ChildId, state: ActorState) {
        if let Some(entry) = self.lock().entries.get_mut(child) {
            entry.state = state;
        }
    }

    pub(crate) fn set_all(&self, state: ActorState) {
        self.lock().entries.values_mut().for_each(|entry| entry.state = state);
    }

    pub(crate) fn set_pending(&self, pending: Vec<PendingCount>) {
        self.lock().pending = pending;
    }

    pub(crate) fn read(&self) -> TreeHealth {
        let shown = self.lock();
        let actors: Vec<ActorHealth> = shown
            .entries
            .iter()
            .map(|(child, entry)| ActorHealth {
                child: child.clone(),
                state: match entry.state {
                    ActorState::Running if entry.vitals.store_unreachable() => ActorState::DatabaseUnreachable,
                    state => state,
                },
                restarts: entry.restarts,
                last_restart: entry.last_restart,
                mailbox_depth: entry.vitals.mailbox_depth(),
                in_flight: entry.vitals.in_flight(),
                since_progress: entry.vitals.since_progress(),
            })
            .collect();
        let mut channels: Vec<ChannelHealth> = Vec::new();
        for actor in &actors {
            let Some(name) = actor.child.channel() else { continue };
            match channels.iter_mut().find(|channel| channel.channel == *name) {
                Some(channel) => channel.state = worse(channel.state, actor.state),
                None => channels.push(ChannelHealth {
                    channel: name.clone(),
                    state: actor.state,
                    pending: shown.pending.iter().find(|count| count.channel == *name).cloned(),
                }),
            }
        }
        TreeHealth { actors, channels }
    }
}

fn worse(one: ActorState, other: ActorState) -> ActorState {
    let badness = |state: ActorState| match state {
        ActorState::Running | ActorState::Restarting => 0,
        ActorState::Draining => 1,
        ActorState::DatabaseUnreachable => 2,
        ActorState::Down => 3,
        ActorState::Stopped => 4,
    };
    let worst = if badness(other) > badness(one) { other } else { one };
    if worst == ActorState::Restarting { ActorState::Running } else { worst }
}
