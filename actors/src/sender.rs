//! A sender: performs attempts in its slots and keeps each outcome until the claimer has settled it.
//!
//! Attempts are tasks in a set that the sender's state owns, so that they are aborted when the sender dies, however it
//! dies. A slot is free again when its attempt's outcome is settled, not before.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ractor::{Actor, ActorProcessingErr, ActorRef};
use tokio::task::JoinSet;

use crate::config::EngineConfig;
use crate::health::ChildId;
use crate::ids::{ClaimToken, DeliveryId};
use crate::messages::{ClaimerMsg, Granted, SenderIndex, SenderMsg, SupervisorMsg, Unrecorded};
use crate::outcome::{Attempted, Outcome, Reason};
use crate::ports::{ChannelPolicy, Ended, Transport};
use crate::vitals::{Inbox, Vitals};

pub(crate) struct Sender<E: Send + Sync + 'static> {
    pub(crate) index: SenderIndex,
    pub(crate) channel: ChannelPolicy,
    pub(crate) transport: Arc<dyn Transport<E>>,
    pub(crate) config: Arc<EngineConfig>,
    pub(crate) vitals: Arc<Vitals>,
    pub(crate) supervisor: Inbox<SupervisorMsg>,
}

pub(crate) struct SenderState<E: Send + Sync + 'static> {
    me: Inbox<SenderMsg<E>>,
    claimer: Option<Inbox<ClaimerMsg<E>>>,
    attempts: JoinSet<()>,
    // By token, not by delivery: one that an operator retried in mid-attempt may be here twice.
    in_flight: BTreeSet<ClaimToken>,
    unsettled: BTreeMap<ClaimToken, Unrecorded<E>>,
    /// Leases on their way back unstarted.
    returning: BTreeSet<ClaimToken>,
    draining: bool,
}

impl<E: Send + Sync + 'static> SenderState<E> {
    fn taken_slots(&self) -> usize {
        self.in_flight.len() + self.unsettled.len() + self.returning.len()
    }
}

impl<E: Clone + Send + Sync + 'static> Actor for Sender<E> {
    type Msg = SenderMsg<E>;
    type State = SenderState<E>;
    type Arguments = Option<Inbox<ClaimerMsg<E>>>;

    async fn pre_start(
        &self,
        me: ActorRef<Self::Msg>,
        claimer: Self::Arguments,
    ) -> Result<Self::State, ActorProcessingErr> {
        let state = SenderState {
            me: Inbox::new(me, Arc::clone(&self.vitals)),
            claimer,
            attempts: JoinSet::new(),
            in_flight: BTreeSet::new(),
            unsettled: BTreeMap::new(),
            returning: BTreeSet::new(),
            draining: false,
        };
        self.register(&state);
        Ok(state)
    }

    async fn handle(
        &self,
        _me: ActorRef<Self::Msg>,
        message: Self::Msg,
        state: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        let _handling = self.vitals.handling();
        match message {
            SenderMsg::Grant(granted) => granted.into_iter().for_each(|one| self.begin(one, state)),
            SenderMsg::AttemptEnded(unrecorded) => {
                let token = unrecorded.ended.token;
                if state.in_flight.remove(&token) {
                    state.unsettled.insert(token, unrecorded.clone());
                    self.tell_claimer(state, ClaimerMsg::Ended(unrecorded));
                }
                while state.attempts.try_join_next().is_some() {}
            }
            SenderMsg::Settled(tokens) => {
                let taken = state.taken_slots();
                for token in &tokens {
                    state.unsettled.remove(token);
                    state.returning.remove(token);
                }
                let freed = taken - state.taken_slots();
                self.ask(state, freed);
            }
            SenderMsg::NewClaimer(claimer) => {
                state.claimer = Some(claimer);
                // What the old claimer had not given back runs out by itself.
                state.returning.clear();
                self.register(state);
                for unrecorded in state.unsettled.values() {
                    self.tell_claimer(state, ClaimerMsg::Ended(unrecorded.clone()));
                }
            }
            SenderMsg::Drain => state.draining = true,
        }
        self.vitals.set_in_flight(state.in_flight.len() + state.unsettled.len());
        if state.draining && state.taken_slots() == 0 {
            let child = ChildId::Sender(self.channel.name.clone(), self.index);
            self.supervisor.send(SupervisorMsg::Drained { child, actor: state.me.actor().get_id() });
        }
        Ok(())
    }
}

impl<E: Clone + Send + Sync + 'static> Sender<E> {
    fn register(&self, state: &SenderState<E>) {
        let free_slots = self.config.slots_per_sender.get().saturating_sub(state.taken_slots());
        self.tell_claimer(state, ClaimerMsg::Register { sender: self.index, inbox: state.me.clone(), free_slots });
    }

    fn ask(&self, state: &SenderState<E>, free_slots: usize) {
        if free_slots > 0 {
            let actor = state.me.actor().get_id();
            self.tell_claimer(state, ClaimerMsg::Ask { sender: self.index, actor, free_slots });
        }
    }

    /// A dead claimer hears nothing; its successor is told everything again.
    fn tell_claimer(&self, state: &SenderState<E>, message: ClaimerMsg<E>) {
        if let Some(claimer) = &state.claimer {
            claimer.send(message);
        }
    }

    fn begin(&self, granted: Granted, state: &mut SenderState<E>) {
        let (delivery, token) = (granted.lease.delivery.id, granted.lease.token);
        // The last look at the lease before a send, by elapsed time: a process that was stopped must not send on it.
        if state.draining || granted.claimed_at.elapsed() > self.config.latest_start() {
            state.returning.insert(token);
            self.tell_claimer(state, ClaimerMsg::GiveBack { sender: self.index, delivery, token });
            return;
        }
        state.in_flight.insert(token);
        let slot = Slot {
            me: state.me.clone(),
            sender: self.index,
            attempt_since_retry: granted.lease.attempt_since_retry,
            delivery,
            token,
            ordered: granted.lease.delivery.ordering_key.is_some(),
            claimed_at: granted.claimed_at,
            config: Arc::clone(&self.config),
            attempted: None,
        };
        let (transport, max_age) = (Arc::clone(&self.transport), self.channel.max_age);
        state.attempts.spawn(attempt(granted, slot, transport, max_age));
    }
}

/// One attempt within the send timeout; a delivery past MAX_AGE fails unsent.
async fn attempt<E: Send + Sync + 'static>(
    granted: Granted,
    mut slot: Slot<E>,
    transport: Arc<dyn Transport<E>>,
    max_age: std::time::Duration,
) {
    if granted.lease.age > max_age {
        slot.attempted = Some(Outcome::failed(Reason::Expired).into());
        return;
    }
    let send = transport.attempt(&granted.lease);
    let attempted = tokio::time::timeout(slot.config.send_timeout, send).await;
    slot.attempted = Some(attempted.unwrap_or_else(|_elapsed| Outcome::retry(Reason::Timeout).into()));
}

/// Reports the attempt's end when it drops, however the attempt ends, so that no slot is ever lost to a panic.
struct Slot<E: Send + Sync + 'static> {
    me: Inbox<SenderMsg<E>>,
    sender: SenderIndex,
    attempt_since_retry: u32,
    delivery: DeliveryId,
    token: ClaimToken,
    ordered: bool,
    claimed_at: tokio::time::Instant,
    config: Arc<EngineConfig>,
    attempted: Option<Attempted<E>>,
}

impl<E: Send + Sync + 'static> Drop for Slot<E> {
    fn drop(&mut self) {
        let attempted = match self.attempted.take() {
            Some(attempted) => attempted,
            None if std::thread::panicking() => Outcome::retry(Reason::Panicked).into(),
            // Aborted together with its sender: the lease runs out.
            None => return,
        };
        let verdict = self.config.backoff.verdict(attempted.outcome, self.attempt_since_retry, &self.config.jitter);
        let Self { delivery, token, ordered, .. } = *self;
        let ended = Ended { delivery, token, ordered, verdict, effect: attempted.effect };
        self.me.send(SenderMsg::AttemptEnded(Unrecorded { ended, claimed_at: self.claimed_at, sender: self.sender }));
    }
}
