//! The root of the tree: starts every child, starts it again when it ends, and ends them all in order.
//!
//! one_for_one with an intensity limit. A child past the limit is reported as down and tried again at the longest
//! wait, while all others go on. A queue that does not answer ends no child, so it never counts as a restart.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ractor::{Actor, ActorCell, ActorId, ActorProcessingErr, ActorRef, SupervisionEvent};
use tokio::sync::oneshot;

use crate::claimer::Claimer;
use crate::config::EngineConfig;
use crate::engine::EngineChannel;
use crate::health::{ActorState, Board, ChildId, RestartReason};
use crate::ids::ChannelName;
use crate::messages::{ClaimerMsg, SenderIndex, SenderMsg, ShutdownReport, SupervisorMsg};
use crate::periodic::{Cleanup, Gauge};
use crate::ports::Queue;
use crate::restarts::RestartWindow;
use crate::sender::Sender;
use crate::vitals::{Inbox, Timer, Vitals};

const WATCH_INTERVAL: Duration = Duration::from_secs(1);
/// How long children get to end by themselves once nothing is under way any more.
const STOP_GRACE: Duration = Duration::from_secs(1);

pub(crate) struct Supervisor<Q: Queue> {
    pub(crate) queue: Arc<Q>,
    pub(crate) channels: Vec<EngineChannel<Q::Effect>>,
    pub(crate) config: Arc<EngineConfig>,
    pub(crate) vitals: Arc<Vitals>,
    pub(crate) board: Board,
    pub(crate) hints: Hints,
}

/// One flag for each channel: set while a hint is on its way to the claimer.
#[derive(Debug, Clone, Default)]
pub(crate) struct Hints(pub(crate) Arc<HashMap<ChannelName, Arc<AtomicBool>>>);

impl Hints {
    pub(crate) fn new<'a>(channels: impl Iterator<Item = &'a ChannelName>) -> Self {
        Self(Arc::new(channels.map(|name| (name.clone(), Arc::new(AtomicBool::new(false)))).collect()))
    }

    /// True where a hint should be sent: the channel exists and none is on its way.
    pub(crate) fn raise(&self, channel: &ChannelName) -> bool {
        self.0.get(channel).is_some_and(|flag| !flag.swap(true, Ordering::AcqRel))
    }

    fn flag(&self, channel: &ChannelName) -> Arc<AtomicBool> {
        self.0.get(channel).map(Arc::clone).unwrap_or_default()
    }
}

struct Child {
    cell: Option<ActorCell>,
    vitals: Arc<Vitals>,
    window: RestartWindow,
    /// Set where the supervisor itself ended it.
    ended_as: Option<RestartReason>,
    _respawn: Option<Timer>,
}

pub(crate) struct SupervisorState<E: Send + Sync + 'static> {
    me: Inbox<SupervisorMsg>,
    children: BTreeMap<ChildId, Child>,
    claimers: BTreeMap<ChannelName, Inbox<ClaimerMsg<E>>>,
    senders: BTreeMap<(ChannelName, SenderIndex), Inbox<SenderMsg<E>>>,
    shutdown: Option<Shutdown>,
    _watch: Option<Timer>,
}

struct Shutdown {
    answers: Vec<oneshot::Sender<ShutdownReport>>,
    undrained: Vec<ChildId>,
    _deadline: Timer,
}

impl<Q: Queue> Actor for Supervisor<Q> {
    type Msg = SupervisorMsg;
    type State = SupervisorState<Q::Effect>;
    type Arguments = ();

    async fn pre_start(&self, me: ActorRef<SupervisorMsg>, (): ()) -> Result<Self::State, ActorProcessingErr> {
        self.board.started(&ChildId::Supervisor, &self.vitals);
        let me = Inbox::new(me, Arc::clone(&self.vitals));
        let watch = me.send_after(WATCH_INTERVAL, SupervisorMsg::Watch);
        Ok(SupervisorState {
            me,
            children: BTreeMap::new(),
            claimers: BTreeMap::new(),
            senders: BTreeMap::new(),
            shutdown: None,
            _watch: Some(watch),
        })
    }

    async fn post_start(
        &self,
        _me: ActorRef<SupervisorMsg>,
        state: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        for child in self.every_child() {
            self.start(child, state).await;
        }
        Ok(())
    }

    async fn handle(
        &self,
        me: ActorRef<SupervisorMsg>,
        message: SupervisorMsg,
        state: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        let _handling = self.vitals.handling();
        match message {
            SupervisorMsg::Hint(channel) => {
                let heard = state.claimers.get(&channel).is_some_and(|claimer| claimer.send(ClaimerMsg::Hint));
                if !heard {
                    // A claimer looks once when it starts, so nothing is missed; later hints must get through.
                    self.hints.flag(&channel).store(false, Ordering::Release);
                }
            }
            SupervisorMsg::Respawn(child) => {
                if state.children.get(&child).is_some_and(|entry| entry.cell.is_none()) {
                    self.start(child, state).await;
                }
            }
            SupervisorMsg::Watch => {
                self.restart_the_stuck(state);
                state._watch = Some(state.me.send_after(WATCH_INTERVAL, SupervisorMsg::Watch));
            }
            SupervisorMsg::Drained { child, actor } => {
                let current = state.children.get(&child).and_then(|entry| entry.cell.as_ref());
                if current.is_some_and(|cell| cell.get_id() == actor) {
                    self.drained(&child, &me, state).await;
                }
            }
            SupervisorMsg::ShutDown(answer) => self.begin_shutdown(answer, &me, state).await,
            SupervisorMsg::ShutdownDeadline => self.finish_shutdown(&me, state).await,
            SupervisorMsg::Kill(child) => match state.children.get(&child).and_then(|entry| entry.cell.as_ref()) {
                Some(cell) => cell.kill(),
                None if child == ChildId::Supervisor => me.kill(),
                None => {}
            },
        }
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        me: ActorRef<SupervisorMsg>,
        event: SupervisionEvent,
        state: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        let (ended, reason) = match &event {
            SupervisionEvent::ActorTerminated(cell, _, Some(why)) if why == "killed" => (cell, RestartReason::Killed),
            SupervisionEvent::ActorTerminated(cell, _, _) => (cell, RestartReason::Stopped),
            SupervisionEvent::ActorFailed(cell, _) => (cell, RestartReason::Failed),
            SupervisionEvent::ActorStarted(_) | SupervisionEvent::ProcessGroupChanged(_) => return Ok(()),
        };
        let id = ended.get_id();
        let child = state
            .children
            .iter()
            .find(|(_, entry)| entry.cell.as_ref().is_some_and(|cell| cell.get_id() == id))
            .map(|(child, _)| child.clone());
        if let Some(child) = child {
            self.ended(child, id, reason, state);
            if let Some(shutdown) = &state.shutdown
                && shutdown.undrained.is_empty()
            {
                self.finish_shutdown(&me, state).await;
            }
        }
        Ok(())
    }
}

impl<Q: Queue> Supervisor<Q> {
    fn every_child(&self) -> Vec<ChildId> {
        let mut children = Vec::new();
        for channel in &self.channels {
            let name = &channel.policy.name;
            children.push(ChildId::Claimer(name.clone()));
            children.extend(SenderIndex::BOTH.map(|index| ChildId::Sender(name.clone(), index)));
        }
        children.extend([ChildId::Cleanup, ChildId::Gauge]);
        children
    }

    async fn start(&self, child: ChildId, state: &mut SupervisorState<Q::Effect>) {
        let vitals = Vitals::new();
        let started = self.spawn(&child, &vitals, state).await;
        let failed = started.is_none();
        let entry = state.children.entry(child.clone()).or_insert_with(|| Child {
            cell: None,
            vitals: Arc::clone(&vitals),
            window: RestartWindow::default(),
            ended_as: None,
            _respawn: None,
        });
        entry.cell = started;
        entry.vitals = Arc::clone(&vitals);
        entry.ended_as = None;
        self.board.started(&child, &vitals);
        if failed {
            self.start_again_later(child, RestartReason::Failed, state);
        } else if state.shutdown.is_some() {
            self.board.set_state(&child, ActorState::Draining);
        }
    }

    async fn spawn(
        &self,
        child: &ChildId,
        vitals: &Arc<Vitals>,
        state: &mut SupervisorState<Q::Effect>,
    ) -> Option<ActorCell> {
        let root = state.me.actor().get_cell();
        let (queue, config, vitals) = (Arc::clone(&self.queue), Arc::clone(&self.config), Arc::clone(vitals));
        match child {
            ChildId::Claimer(name) => {
                let channel = self.channel(name)?.policy.clone();
                let hinted = self.hints.flag(name);
                hinted.store(false, Ordering::Release);
                let claimer = Claimer { queue, channel, config, vitals: Arc::clone(&vitals), hinted };
                let (actor, _) = Actor::spawn_linked(None, claimer, (), root).await.ok()?;
                let cell = actor.get_cell();
                let inbox = Inbox::new(actor, vitals);
                if state.shutdown.is_some() {
                    inbox.send(ClaimerMsg::Drain);
                }
                for index in SenderIndex::BOTH {
                    if let Some(sender) = state.senders.get(&(name.clone(), index)) {
                        sender.send(SenderMsg::NewClaimer(inbox.clone()));
                    }
                }
                state.claimers.insert(name.clone(), inbox);
                Some(cell)
            }
            ChildId::Sender(name, index) => {
                let channel = self.channel(name)?;
                let sender = Sender {
                    index: *index,
                    channel: channel.policy.clone(),
                    transport: Arc::clone(&channel.transport),
                    config,
                    vitals: Arc::clone(&vitals),
                    supervisor: state.me.clone(),
                };
                let claimer = state.claimers.get(name).cloned();
                let (actor, _) = Actor::spawn_linked(None, sender, claimer, root).await.ok()?;
                let cell = actor.get_cell();
                state.senders.insert((name.clone(), *index), Inbox::new(actor, vitals));
                Some(cell)
            }
            ChildId::Cleanup => {
                let (actor, _) = Actor::spawn_linked(None, Cleanup { queue, config, vitals }, (), root).await.ok()?;
                Some(actor.get_cell())
            }
            ChildId::Gauge => {
                let channels = self.channels.iter().map(|channel| channel.policy.name.clone()).collect();
                let gauge = Gauge { queue, channels, config, vitals, board: self.board.clone() };
                let (actor, _) = Actor::spawn_linked(None, gauge, (), root).await.ok()?;
                Some(actor.get_cell())
            }
            ChildId::Supervisor => None,
        }
    }

    fn channel(&self, name: &ChannelName) -> Option<&EngineChannel<Q::Effect>> {
        self.channels.iter().find(|channel| channel.policy.name == *name)
    }

    fn ended(&self, child: ChildId, id: ActorId, reason: RestartReason, state: &mut SupervisorState<Q::Effect>) {
        if let ChildId::Sender(channel, sender) = &child {
            if let Some(claimer) = state.claimers.get(channel) {
                claimer.send(ClaimerMsg::SenderGone { sender: *sender, actor: id });
            }
            if let Some(shutdown) = &mut state.shutdown {
                // Its attempts ended with it; there is nothing left to wait for.
                shutdown.undrained.retain(|waited_for| *waited_for != child);
            }
        }
        let needed = state.shutdown.is_none() || matches!(child, ChildId::Claimer(_));
        if let Some(entry) = state.children.get_mut(&child) {
            entry.cell = None;
            let reason = entry.ended_as.take().unwrap_or(reason);
            if needed {
                self.start_again_later(child, reason, state);
            }
        }
    }

    fn start_again_later(&self, child: ChildId, reason: RestartReason, state: &mut SupervisorState<Q::Effect>) {
        let Some(entry) = state.children.get_mut(&child) else { return };
        let restart = entry.window.ended(&self.config.restart_intensity);
        let shown = if restart.past_limit { ActorState::Down } else { ActorState::Restarting };
        self.board.ended(&child, reason, shown);
        if restart.past_limit {
            tracing::error!(actor = %child, reason = reason.as_str(), wait = ?restart.wait, "restarted too often: down, tried again after the longest wait");
        } else {
            tracing::warn!(actor = %child, reason = reason.as_str(), wait = ?restart.wait, "ended, starting it again");
        }
        entry._respawn = Some(state.me.send_after(restart.wait, SupervisorMsg::Respawn(child)));
    }

    /// The longest step that is legal: one call to the queue, and room.
    fn longest_step(&self, child: &ChildId) -> Duration {
        let call = if *child == ChildId::Cleanup { self.config.cleanup_timeout } else { self.config.queue_timeout };
        call.saturating_add(Duration::from_secs(5))
    }

    fn restart_the_stuck(&self, state: &mut SupervisorState<Q::Effect>) {
        for (child, entry) in &mut state.children {
            if let Some(cell) = &entry.cell
                && entry.vitals.busy_for().is_some_and(|busy| busy > self.longest_step(child))
            {
                tracing::error!(actor = %child, "stuck in one message for longer than its longest step: ending it");
                entry.ended_as = Some(RestartReason::Stuck);
                cell.kill();
            }
        }
    }

    async fn begin_shutdown(
        &self,
        answer: oneshot::Sender<ShutdownReport>,
        me: &ActorRef<SupervisorMsg>,
        state: &mut SupervisorState<Q::Effect>,
    ) {
        if let Some(shutdown) = &mut state.shutdown {
            shutdown.answers.push(answer);
            return;
        }
        tracing::info!(deadline = ?self.config.shutdown_deadline, "shutting down: no more claims, waiting for what is under way");
        self.board.set_all(ActorState::Draining);
        for claimer in state.claimers.values() {
            // One that is being restarted hears of it when it starts.
            claimer.send(ClaimerMsg::Drain);
        }
        let undrained: Vec<ChildId> = state
            .children
            .iter()
            .filter(|(child, entry)| matches!(child, ChildId::Sender(..)) && entry.cell.is_some())
            .map(|(child, _)| child.clone())
            .collect();
        let all_idle = undrained.is_empty();
        let deadline = state.me.send_after(self.config.shutdown_deadline, SupervisorMsg::ShutdownDeadline);
        state.shutdown = Some(Shutdown { answers: vec![answer], undrained, _deadline: deadline });
        if all_idle {
            self.finish_shutdown(me, state).await;
        }
    }

    async fn drained(&self, child: &ChildId, me: &ActorRef<SupervisorMsg>, state: &mut SupervisorState<Q::Effect>) {
        let Some(shutdown) = &mut state.shutdown else { return };
        shutdown.undrained.retain(|waited_for| waited_for != child);
        if shutdown.undrained.is_empty() {
            self.finish_shutdown(me, state).await;
        }
    }

    async fn finish_shutdown(&self, me: &ActorRef<SupervisorMsg>, state: &mut SupervisorState<Q::Effect>) {
        let Some(shutdown) = state.shutdown.take() else { return };
        let aborted_attempts = state.senders.values().map(|sender| sender.vitals().in_flight()).sum();
        if aborted_attempts > 0 {
            tracing::warn!(aborted_attempts, "shutdown deadline passed: attempts aborted, their leases run out");
        }
        // Forgotten first, so that their ends are no news.
        state.children.clear();
        me.stop_children_and_wait(None, Some(STOP_GRACE)).await;
        self.board.set_all(ActorState::Stopped);
        for answer in shutdown.answers {
            let _ = answer.send(ShutdownReport { aborted_attempts });
        }
        me.stop(Some("shut down".into()));
    }
}
