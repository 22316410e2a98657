//! A channel's claimer: leases out, outcomes in. The only actor that talks to the queue for its channel.
//!
//! It claims no more than its senders asked for, so that no lease waits in a mailbox, and records what ended before
//! it claims again. Everything here may be lost: senders keep an outcome until it is settled and hand it to the next
//! claimer, and a lease that was granted to nobody runs out.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ractor::{Actor, ActorId, ActorProcessingErr, ActorRef};
use tokio::time::Instant;

use crate::config::EngineConfig;
use crate::ids::{ClaimToken, DeliveryId};
use crate::messages::{ClaimerMsg, Granted, SenderIndex, SenderMsg, Unrecorded};
use crate::outcome::Settled;
use crate::ports::{ChannelPolicy, Ended, Queue, Search};
use crate::store::Outage;
use crate::vitals::{Inbox, Timer, Vitals};

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
    unstarted: Vec<(SenderIndex, DeliveryId, ClaimToken)>,
    outage: Outage,
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
            me,
            senders: BTreeMap::new(),
            unrecorded: Vec::new(),
            unstarted: Vec::new(),
            outage: Outage::default(),
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
                if state.draining {
                    inbox.send(SenderMsg::Drain);
                }
                state.senders.insert(sender, Credit { inbox, free_slots });
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
                state.unstarted.push((sender, delivery, token));
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
            ClaimerMsg::Step => {
                state.stepping = false;
                self.step(state).await;
            }
            ClaimerMsg::Drain => {
                state.draining = true;
                // By way of the claimer, so that a sender hears of it after every lease that was granted to it.
                for credit in state.senders.values() {
                    credit.inbox.send(SenderMsg::Drain);
                }
            }
        }
        Ok(())
    }
}

impl<Q: Queue> Claimer<Q> {
    async fn step(&self, state: &mut ClaimerState<Q::Effect>) {
        self.give_up_what_lapsed(state);
        if let Some(wait) = state.outage.wait() {
            state._retry = Some(state.me.send_after(wait, ClaimerMsg::Step));
            return;
        }
        self.give_back(state).await;
        self.record(state).await;
        if state.outage.wait().is_none() {
            self.claim(state).await;
        }
        if let Some(wait) = state.outage.wait() {
            state._retry = Some(state.me.send_after(wait, ClaimerMsg::Step));
        }
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

    async fn give_back(&self, state: &mut ClaimerState<Q::Effect>) {
        if state.unstarted.is_empty() {
            return;
        }
        let unstarted = std::mem::take(&mut state.unstarted);
        let leases: Vec<_> = unstarted.iter().map(|(_, delivery, token)| (*delivery, *token)).collect();
        let call = self.queue.give_back(&self.channel.name, &leases);
        // Where it fails, the leases run out by themselves.
        let _ = state.outage.call("giving leases back", self.config.queue_timeout, &self.vitals, call).await;
        state.settle(unstarted.into_iter().map(|(sender, _, token)| (sender, token)));
    }

    async fn record(&self, state: &mut ClaimerState<Q::Effect>) {
        while !state.unrecorded.is_empty() && state.outage.wait().is_none() {
            let size = state.unrecorded.len().min(self.config.batch.get());
            let batch: Vec<Ended<Q::Effect>> = state.unrecorded[..size].iter().map(|one| one.ended.clone()).collect();
            let call = self.queue.record(&self.channel, &batch);
            let Some(recorded) =
                state.outage.call("recording outcomes", self.config.queue_timeout, &self.vitals, call).await
            else {
                return;
            };
            if recorded.released > 0 {
                state.look(Search::Ahead);
            }
            let mut settled = recorded.settled.into_iter();
            let done: Vec<_> = state
                .unrecorded
                .extract_if(..size, |one| match settled.next() {
                    // Kept for the next step, while its lease lasts.
                    None | Some(Settled::Unrecorded) => false,
                    Some(settled) => {
                        self.log_if_lost(one.ended.delivery, settled);
                        true
                    }
                })
                .collect();
            let kept = done.len() < size;
            state.settle(done.iter().map(|one| (one.sender, one.ended.token)));
            if kept {
                state.outage.pause();
            }
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

    async fn claim(&self, state: &mut ClaimerState<Q::Effect>) {
        while let Some(search) = state.look.filter(|_| !state.draining) {
            let wanted = state.free_slots().min(self.config.batch.get());
            let Some(slots) = NonZeroUsize::new(wanted) else { return };
            let claimed_at = Instant::now();
            let call = self.queue.claim(&self.channel.name, slots, self.config.lease, search);
            let Some(leases) = state.outage.call("claiming", self.config.queue_timeout, &self.vitals, call).await
            else {
                return;
            };
            // What is left behind a full claim lies ahead of it.
            state.look = (leases.len() == wanted).then_some(Search::Ahead);
            if search == Search::All {
                state.all_again_at = Instant::now() + claimed_at.elapsed() * SHARE_OF_SEARCHES;
            }
            self.grant(state, leases.into_iter().map(|lease| Granted { lease, claimed_at }).collect());
        }
    }

    /// Spreads leases over the free slots, the sender with most of them first, so that one slow sender starves nobody.
    fn grant(&self, state: &mut ClaimerState<Q::Effect>, leases: Vec<Granted>) {
        let mut shares: BTreeMap<SenderIndex, Vec<Granted>> = BTreeMap::new();
        for granted in leases {
            let roomiest = state.senders.iter_mut().max_by_key(|(_, credit)| credit.free_slots);
            if let Some((index, credit)) = roomiest.filter(|(_, credit)| credit.free_slots > 0) {
                credit.free_slots -= 1;
                shares.entry(*index).or_default().push(granted);
            }
        }
        for (index, share) in shares {
            let back: Vec<_> = share.iter().map(|one| (index, one.lease.delivery.id, one.lease.token)).collect();
            let granted = state.senders.get(&index).is_some_and(|credit| credit.inbox.send(SenderMsg::Grant(share)));
            if !granted {
                state.senders.remove(&index);
                state.unstarted.extend(back);
                state.step_soon();
            }
        }
    }
}
