//! The running tree, as its host holds it.

use std::sync::Arc;

use ractor::{Actor, ActorCell, ActorStatus, SpawnErr};
use tokio::sync::oneshot;

use crate::config::{ConfigError, EngineConfig};
use crate::health::{ActorState, Board, ChildId, TreeHealth};
use crate::ids::ChannelName;
use crate::messages::{ShutdownReport, SupervisorMsg};
use crate::ports::{ChannelPolicy, Queue, Transport};
use crate::supervisor::{Hints, Supervisor};
use crate::vitals::{Inbox, Vitals};

/// A channel to run: its policy and what performs its attempts.
pub struct EngineChannel<E> {
    /// Name and MAX_AGE.
    pub policy: ChannelPolicy,
    /// Performs attempts; shared by the channel's two senders.
    pub transport: Arc<dyn Transport<E>>,
}

/// The tree could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The settings cannot keep the guarantees.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The supervisor did not start, or its parent is stopping.
    #[error("the supervisor did not start")]
    Spawn(#[source] SpawnErr),
}

/// A running tree. Dropping it leaves the tree running; [`Engine::shut_down`] ends it.
#[derive(Clone)]
pub struct Engine {
    supervisor: Inbox<SupervisorMsg>,
    board: Board,
    hints: Hints,
}

impl Engine {
    /// Starts the tree, on its own or linked to `parent`, whose supervision then hears of the tree's end.
    ///
    /// # Errors
    /// Settings that cannot keep the guarantees, a channel registered twice, or a parent that is stopping.
    pub async fn start<Q: Queue>(
        queue: Arc<Q>,
        channels: Vec<EngineChannel<Q::Effect>>,
        config: EngineConfig,
        parent: Option<ActorCell>,
    ) -> Result<Self, StartError> {
        let policies: Vec<ChannelPolicy> = channels.iter().map(|channel| channel.policy.clone()).collect();
        config.prove(&policies)?;
        let hints = Hints::new(policies.iter().map(|policy| &policy.name));
        let (vitals, board) = (Vitals::new(), Board::default());
        let supervisor = Supervisor {
            queue,
            channels,
            config: Arc::new(config),
            vitals: Arc::clone(&vitals),
            board: board.clone(),
            hints: hints.clone(),
        };
        let (actor, _) = match parent {
            Some(parent) => Actor::spawn_linked(None, supervisor, (), parent).await,
            None => Actor::spawn(None, supervisor, ()).await,
        }
        .map_err(StartError::Spawn)?;
        Ok(Self { supervisor: Inbox::new(actor, vitals), board, hints })
    }

    /// Says that something may have become due in `channel`. Cheap: any number of hints is one message.
    pub fn hint(&self, channel: &ChannelName) {
        if self.hints.raise(channel) && !self.supervisor.send(SupervisorMsg::Hint(channel.clone())) {
            tracing::debug!(%channel, "hint to a tree that has ended");
        }
    }

    /// The state of every actor, without asking any of them.
    pub fn health(&self) -> TreeHealth {
        let mut health = self.board.read();
        if self.has_ended() {
            health.actors.iter_mut().for_each(|actor| actor.state = ActorState::Stopped);
            health.channels.iter_mut().for_each(|channel| channel.state = ActorState::Stopped);
        }
        health
    }

    /// True once the supervisor has ended, in order or not.
    pub fn has_ended(&self) -> bool {
        matches!(self.supervisor.actor().get_status(), ActorStatus::Stopped)
    }

    /// Waits for the tree's end, in order or not.
    pub async fn ended(&self) {
        // Without a time limit it can only fail where the actor has ended already.
        let _ = self.supervisor.actor().get_cell().wait(None).await;
    }

    /// Stops claiming, lets attempts finish up to the shutdown deadline, records them, gives unstarted leases back and
    /// ends every actor. Bounded, and idempotent: any number of calls get the report of the one shutdown, and a tree
    /// that has ended already reports nothing aborted.
    pub async fn shut_down(&self) -> ShutdownReport {
        let (answer, report) = oneshot::channel();
        self.supervisor.send(SupervisorMsg::ShutDown(answer));
        let report = report.await.unwrap_or(ShutdownReport { aborted_attempts: 0 });
        self.ended().await;
        report
    }

    /// Ends one actor as a crash would. For tests of supervision and for chaos; the tree mends itself.
    pub fn kill(&self, child: &ChildId) {
        self.supervisor.send(SupervisorMsg::Kill(child.clone()));
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("ended", &self.has_ended()).finish_non_exhaustive()
    }
}
