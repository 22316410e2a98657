//! What /health says.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use postrider_actors::{ActorHealth, ActorState, ChannelHealth};
use serde::Serialize;

use crate::subsystem::Subsystem;

/// Whether this process takes part in delivering. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Readiness {
    subsystem: Subsystem,
    draining: Arc<AtomicBool>,
}

impl Readiness {
    pub(super) fn new(subsystem: Subsystem) -> Self {
        Self { subsystem, draining: Arc::default() }
    }

    /// It is going to end.
    pub(super) fn drain(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    /// True while the actors are there, whatever state they are in: a restart would mend nothing that they do not mend
    /// themselves, least of all an unreachable database.
    pub(super) fn is_alive(&self) -> bool {
        let tree = self.subsystem.health().tree;
        self.draining.load(Ordering::Relaxed) || !tree.actors.iter().any(|actor| actor.state == ActorState::Stopped)
    }

    /// Why it is not ready, in words; none: it is.
    pub(super) fn reasons(&self) -> Vec<String> {
        let tree = self.subsystem.health().tree;
        let mut reasons = Vec::new();
        if self.draining.load(Ordering::Relaxed) {
            reasons.push("draining".to_owned());
        }
        if tree.actors.iter().any(|actor| actor.state == ActorState::DatabaseUnreachable) {
            reasons.push("database unreachable".to_owned());
        }
        let broken = tree.channels.iter().filter(|one| matches!(one.state, ActorState::Down | ActorState::Stopped));
        reasons.extend(broken.map(|one| format!("channel {} {}", one.channel, one.state.as_str())));
        reasons
    }

    pub(super) fn report(&self) -> Report {
        let health = self.subsystem.health();
        Report {
            actors: health.tree.actors.iter().map(ActorReport::from).collect(),
            channels: health.tree.channels.iter().map(ChannelReport::from).collect(),
            hears_other_processes: health.hears_other_processes,
        }
    }
}

/// The body of /health/actors.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    actors: Vec<ActorReport>,
    channels: Vec<ChannelReport>,
    hears_other_processes: bool,
}

#[derive(Debug, Serialize)]
struct ActorReport {
    name: String,
    channel: Option<String>,
    state: &'static str,
    restarts: u64,
    last_restart: Option<&'static str>,
    mailbox_depth: usize,
    in_flight: usize,
    since_progress_seconds: f64,
}

impl From<&ActorHealth> for ActorReport {
    fn from(actor: &ActorHealth) -> Self {
        Self {
            name: actor.child.to_string(),
            channel: actor.child.channel().map(ToString::to_string),
            state: actor.state.as_str(),
            restarts: actor.restarts,
            last_restart: actor.last_restart.map(|reason| reason.as_str()),
            mailbox_depth: actor.mailbox_depth,
            in_flight: actor.in_flight,
            since_progress_seconds: actor.since_progress.as_secs_f64(),
        }
    }
}

#[derive(Debug, Serialize)]
struct ChannelReport {
    name: String,
    state: &'static str,
    pending: Option<u64>,
    oldest_pending_age_seconds: Option<f64>,
}

impl From<&ChannelHealth> for ChannelReport {
    fn from(channel: &ChannelHealth) -> Self {
        Self {
            name: channel.channel.to_string(),
            state: channel.state.as_str(),
            pending: channel.pending.as_ref().map(|count| count.pending),
            oldest_pending_age_seconds: channel.pending.as_ref().map(|count| count.oldest_age.as_secs_f64()),
        }
    }
}
