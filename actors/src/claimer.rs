//! A channel's claimer: leases out, outcomes in. The only actor that talks to the queue for its channel.
//!
//! It claims no more than its senders asked for, so that no lease waits in a mailbox, and it claims while it records, so
//! that neither waits for the other. Everything here may be lost: senders keep an outcome until it is settled and hand
//! it to the next claimer, and a lease that was granted to nobody runs out.

use std::collections::BTreeMap;
use std::iter::repeat;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ractor::{Actor, ActorId, ActorProcessingErr, ActorRef};
use tokio::time::Instant;

use crate::calls::{Answer, Call, Calls, Unstarted};
use crate::config::EngineConfig;
use crate::ids::{ClaimToken, DeliveryId};
use crate::messages::{ClaimerMsg, Granted, SenderIndex, SenderMsg, Unrecorded};
use crate::outcome::Settled;
use crate::ports::{ChannelPolicy, Ended, Lease, Queue, QueueError, Recorded, Search};
use crate::store::Outage;
use crate::vitals::{Inbox, Timer, Vitals};

/// A claim covers one sender's slots, but no fewer than these: so one half is claimed while the other is recorded.
const LEAST_HALF: usize = 50;
/// Searches of all take at most one part in so many of the time.
const SHARE_OF_SEARCHES: u32 = 20;

pub(crate) struct Claimer<Q: Queue> {
    pub(crate) queue: Arc<Q>,
    pub(crate) channel: ChannelPolicy,
    pub(crate) config: Arc<EngineConfig>,
    pub(crate) vitals: Arc<Vitals>,
    /// Set while a hint is on its way, so that a busy host cannot flood the mailbox.
    pub(crate) hinted: Arc<AtomicBool>,
}

struct Credit<E: Send + Sync + 'static> {
    inbox: Inbox<SenderMsg<E>>,
    free_slots: usize,
}

pub(crate) struct ClaimerState<E: Send + Sync + 'static> {
    me: Inbox<ClaimerMsg<E>>,
    senders: BTreeMap<SenderIndex, Credit<E>>,
    unrecorded: Vec<Unrecorded<E>>,
    unstarted: Vec<Unstarted>,
    calls: Calls<E>,
    /// Of recordings, and of what is given back.
    recording: Outage,
    claiming: Outage,
    /// Something may be due: after a hint, a poll, a released key, or a claim that came back full.
    look: Option<Search>,
    /// Where a search of all takes long, polls look ahead meanwhile.
    all_again_at: Instant,
    stepping: bool,
    draining: bool,
    _poll: Option<Timer>,
    _retry: Option<Timer>,
}

impl<E: Send + Sync + 'static> ClaimerState<E> {
    fn step_soon(&mut self) {
        if !self.stepping {
            self.stepping = self.me.send(ClaimerMsg::Step);
        }
    }

    /// Looks at the next step, as far back as whoever asked for most.
    fn look(&mut self, search: Search) {
        self.look = self.look.max(Some(search));
    }

    fn sender(&mut self, index: SenderIndex, actor: ActorId) -> Option<&mut Credit<E>> {
        self.senders.get_mut(&index).filter(|credit| credit.inbox.actor().get_id() == actor)
    }

    /// By way of the claimer, so that a sender hears of it after every lease that was granted to it.
    fn forward_drain(&self) {
        if self.draining && !self.calls.under_way(Call::Claim) {
            for credit in self.senders.values() {
                credit.inbox.send(SenderMsg::Drain);
            }
        }
    }

    fn free_slots(&self) -> usize {
        self.senders.values().map(|credit| credit.free_slots).sum()
    }

    fn settle(&self, settled: impl IntoIterator<Item = (SenderIndex, ClaimToken)>) {
        let mut by_sender: BTreeMap<SenderIndex, Vec<ClaimToken>> = BTreeMap::new();
        for (sender, token) in settled {
            by_sender.entry(sender).or_default().push(token);
        }
        for (sender, tokens) in by_sender {
            if let Some(credit) = self.senders.get(&sender) {
                credit.inbox.send(SenderMsg::Settled(tokens));
            }
        }
    }
}

impl<Q: Queue> Actor for Claimer<Q> {
    type Msg = ClaimerMsg<Q::Effect>;
    type State = ClaimerState<Q::Effect>;
    type Arguments = ();

    async fn pre_start(&self, me: ActorRef<Self::Msg>, (): ()) -> Result<Self::State, ActorProcessingErr> {
        let me = Inbox::new(me, Arc::clone(&self.vitals));
        me.send(ClaimerMsg::Poll);
        Ok(ClaimerState {
            calls: Calls::new(me.clone(), self.config.queue_timeout),
            me,
            senders: BTreeMap::new(),
            unrecorded: Vec::new(),
            unstarted: Vec::new(),
            recording: Outage::default(),
            claiming: Outage::default(),
            look: Some(Search::All),
            all_again_at: Instant::now(),
            stepping: false,
            draining: false,
            _poll: None,
            _retry: None,
        })
    }

    async fn handle(
        &self,
        _me: ActorRef<Self::Msg>,
        message: Self::Msg,
        state: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        let _handling = self.vitals.handling();
        match message {
            ClaimerMsg::Register { sender, inbox, free_slots } => {
                state.senders.insert(sender, Credit { inbox, free_slots });
                state.forward_drain();
                state.look(Search::All);
                state.step_soon();
            }
            ClaimerMsg::Ask { sender, actor, free_slots } => {
                if let Some(credit) = state.sender(sender, actor) {
                    credit.free_slots += free_slots;
                    state.step_soon();
                }
            }
            ClaimerMsg::SenderGone { sender, actor } => {
                if state.sender(sender, actor).is_some() {
                    state.senders.remove(&sender);
                }
            }
            ClaimerMsg::Ended(unrecorded) => {
                state.unrecorded.push(unrecorded);
                state.step_soon();
            }
            ClaimerMsg::GiveBack { sender, delivery, token } => {
                state.unstarted.push(Unstarted { sender: Some(sender), delivery, token });
                state.step_soon();
            }
            ClaimerMsg::Hint => {
                self.hinted.store(false, Ordering::Release);
                state.look(Search::Ahead);
                state.step_soon();
            }
            ClaimerMsg::Poll => {
                let all_again = Instant::now() >= state.all_again_at;
                state.look(if all_again { Search::All } else { Search::Ahead });
                state.step_soon();
                let spread = 0.9 + 0.2 * self.config.jitter.draw();
                state._poll = Some(state.me.send_after(self.config.poll_interval.mul_f64(spread), ClaimerMsg::Poll));
            }
            ClaimerMsg::Answered(call, answer) => {
                state.calls.over(call);
                match answer.ok_or("a call to the queue panicked")? {
                    Answer::GivenBack { leases, answer } => self.given_back(state, leases, answer),
                    Answer::Recorded { batch, answer } => self.recorded(state, batch, answer),
                    Answer::Claimed { search, slots, claimed_at, answer } => {
                        self.claimed(state, (search, slots, claimed_at), answer);
                        state.forward_drain();
                    }
                }
                state.step_soon();
            }
            ClaimerMsg::Step => {
                state.stepping = false;
                self.step(state);
            }
            ClaimerMsg::Drain => {
                state.draining = true;
                state.forward_drain();
            }
        }
        Ok(())
    }
}

impl<Q: Queue> Claimer<Q> {
    /// Makes each call that is called for and not under way.
    fn step(&self, state: &mut ClaimerState<Q::Effect>) {
        self.give_up_what_lapsed(state);
        if state.recording.wait().is_none() {
            self.give_back(state);
            self.record(state);
            if state.claiming.wait().is_none() {
                self.claim(state);
            }
        }
        let wait = [state.recording.wait(), state.claiming.wait()].into_iter().flatten().min();
        state._retry = wait.map(|wait| state.me.send_after(wait, ClaimerMsg::Step));
    }

    /// An outcome whose lease has ended while the queue could not be reached is logged, not counted.
    fn give_up_what_lapsed(&self, state: &mut ClaimerState<Q::Effect>) {
        let lapsed: Vec<_> =
            state.unrecorded.extract_if(.., |one| one.claimed_at.elapsed() >= self.config.lease).collect();
        for one in &lapsed {
            tracing::warn!(channel = %self.channel.name, delivery = %one.ended.delivery, "outcome unrecorded: its lease ended while the queue could not be reached");
        }
        state.settle(lapsed.iter().map(|one| (one.sender, one.ended.token)));
    }

    fn give_back(&self, state: &mut ClaimerState<Q::Effect>) {
        if state.unstarted.is_empty() || state.calls.under_way(Call::GiveBack) {
            return;
        }
        let leases = std::mem::take(&mut state.unstarted);
        let (queue, channel) = (Arc::clone(&self.queue), self.channel.name.clone());
        let tokens: Vec<_> = leases.iter().map(|one| (one.delivery, one.token)).collect();
        let asking = async move { queue.give_back(&channel, &tokens).await };
        state.calls.make(Call::GiveBack, asking, |answer| Answer::GivenBack { leases, answer });
    }

    /// Where it failed, the leases run out by themselves.
    fn given_back(&self, state: &mut ClaimerState<Q::Effect>, leases: Vec<Unstarted>, answer: Result<(), QueueError>) {
        let _ = state.recording.heard(answer, state.claiming.lasts(), &self.vitals);
        state.settle(leases.into_iter().filter_map(|one| Some((one.sender?, one.token))));
    }

    fn record(&self, state: &mut ClaimerState<Q::Effect>) {
        if state.unrecorded.is_empty() || state.calls.under_way(Call::Record) {
            return;
        }
        let size = state.unrecorded.len().min(self.config.batch.get());
        let batch: Vec<_> = state.unrecorded.drain(..size).collect();
        let ended: Vec<Ended<Q::Effect>> = batch.iter().map(|one| one.ended.clone()).collect();
        let (queue, channel) = (Arc::clone(&self.queue), self.channel.clone());
        let asking = async move { queue.record(&channel, &ended).await };
        state.calls.make(Call::Record, asking, |answer| Answer::Recorded { batch, answer });
    }

    /// What is not settled is kept for another recording, while its lease lasts.
    fn recorded(
        &self,
        state: &mut ClaimerState<Q::Effect>,
        batch: Vec<Unrecorded<Q::Effect>>,
        answer: Result<Recorded, QueueError>,
    ) {
        let Some(recorded) = state.recording.heard(answer, state.claiming.lasts(), &self.vitals) else {
            state.unrecorded.splice(..0, batch);
            return;
        };
        if recorded.released > 0 {
            state.look(Search::Ahead);
        }
        let settled = recorded.settled.into_iter().chain(repeat(Settled::Unrecorded));
        let (kept, done): (Vec<_>, Vec<_>) =
            batch.into_iter().zip(settled).partition(|(_, settled)| *settled == Settled::Unrecorded);
        for (one, settled) in &done {
            self.log_if_lost(one.ended.delivery, *settled);
        }
        state.settle(done.iter().map(|(one, _)| (one.sender, one.ended.token)));
        if !kept.is_empty() {
            state.unrecorded.splice(..0, kept.into_iter().map(|(one, _)| one));
            state.recording.pause();
        }
    }

    fn log_if_lost(&self, delivery: DeliveryId, settled: Settled) {
        let channel = &self.channel.name;
        match settled {
            Settled::Recorded(_) | Settled::Unrecorded => {}
            Settled::LeaseLost => {
                tracing::warn!(%channel, %delivery, "lease lost: the outcome is discarded, an operator or another claim owns the delivery");
            }
            Settled::EffectFailed => {
                tracing::warn!(%channel, %delivery, "effect failed: nothing recorded, tried again after the lease");
            }
        }
    }

    fn claim(&self, state: &mut ClaimerState<Q::Effect>) {
        let most = self.config.slots_per_sender.get().max(LEAST_HALF).min(self.config.batch.get());
        let Some(slots) = NonZeroUsize::new(state.free_slots().min(most)) else { return };
        if state.draining || state.calls.under_way(Call::Claim) {
            return;
        }
        // What shows up while it is made is looked for by the next one.
        let Some(search) = state.look.take() else { return };
        let (queue, channel, lease) = (Arc::clone(&self.queue), self.channel.name.clone(), self.config.lease);
        let claimed_at = Instant::now();
        let asking = async move { queue.claim(&channel, slots, lease, search).await };
        let slots = slots.get();
        state.calls.make(Call::Claim, asking, move |answer| Answer::Claimed { search, slots, claimed_at, answer });
    }

    fn claimed(
        &self,
        state: &mut ClaimerState<Q::Effect>,
        (search, slots, claimed_at): (Search, usize, Instant),
        answer: Result<Vec<Lease>, QueueError>,
    ) {
        let Some(leases) = state.claiming.heard(answer, state.recording.lasts(), &self.vitals) else {
            state.look(search);
            return;
        };
        if leases.len() == slots {
            // What is left behind a full claim lies ahead of it.
            state.look(Search::Ahead);
        }
        if search == Search::All {
            state.all_again_at = Instant::now() + claimed_at.elapsed() * SHARE_OF_SEARCHES;
        }
        self.grant(state, leases.into_iter().map(|lease| Granted { lease, claimed_at }).collect());
    }

    /// Spreads leases over the free slots, the sender with most of them first, so that one slow sender starves nobody.
    fn grant(&self, state: &mut ClaimerState<Q::Effect>, leases: Vec<Granted>) {
        let mut shares: BTreeMap<SenderIndex, Vec<Granted>> = BTreeMap::new();
        for granted in leases {
            let roomiest = state.senders.iter_mut().max_by_key(|(_, credit)| credit.free_slots);
            match roomiest.filter(|(_, credit)| credit.free_slots > 0) {
                Some((index, credit)) => {
                    credit.free_slots -= 1;
                    shares.entry(*index).or_default().push(granted);
                }
                // Whose slot it was for has ended meanwhile.
                None => state.unstarted.push(unstarted(None, &granted)),
            }
        }
        for (index, share) in shares {
            let back: Vec<_> = share.iter().map(|granted| unstarted(Some(index), granted)).collect();
            let granted = state.senders.get(&index).is_some_and(|credit| credit.inbox.send(SenderMsg::Grant(share)));
            if !granted {
                state.senders.remove(&index);
                state.unstarted.extend(back);
            }
        }
    }
}

fn unstarted(sender: Option<SenderIndex>, granted: &Granted) -> Unstarted {
    Unstarted { sender, delivery: granted.lease.delivery.id, token: granted.lease.token }
}
