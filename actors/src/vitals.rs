//! What every actor shows of itself while it runs, without being asked.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use ractor::{ActorRef, Message};
use tokio::time::Instant;

use crate::calls::Call;

/// Written by an actor's own handler, read by the supervisor and by health. One for each life of an actor.
#[derive(Debug)]
pub(crate) struct Vitals {
    born: Instant,
    mailbox: AtomicUsize,
    in_flight: AtomicUsize,
    /// Milliseconds after `born`, plus one, when the present message was taken up; zero: idle.
    busy_since: AtomicU64,
    /// The same for each call to the queue that is made beside the messages.
    calling_since: [AtomicU64; Call::KINDS],
    /// Milliseconds after `born` when a message was last finished.
    progressed: AtomicU64,
    store_unreachable: AtomicBool,
}

impl Vitals {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            born: Instant::now(),
            mailbox: AtomicUsize::new(0),
            in_flight: AtomicUsize::new(0),
            busy_since: AtomicU64::new(0),
            calling_since: Default::default(),
            progressed: AtomicU64::new(0),
            store_unreachable: AtomicBool::new(false),
        })
    }

    fn millis(&self) -> u64 {
        u64::try_from(self.born.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Marks the message as taken from the mailbox and the actor as busy until the guard drops.
    pub(crate) fn handling(self: &Arc<Self>) -> Handling {
        let _ = self.mailbox.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |depth| Some(depth.saturating_sub(1)));
        self.busy_since.store(self.millis() + 1, Ordering::Relaxed);
        Handling(Arc::clone(self))
    }

    /// Marks the call as under way until the guard drops.
    pub(crate) fn calling(self: &Arc<Self>, call: Call) -> Calling {
        self.calling_since[call as usize].store(self.millis() + 1, Ordering::Relaxed);
        Calling(Arc::clone(self), call)
    }

    /// A step within the present message is done: what is stuck is counted from here.
    pub(crate) fn step_done(&self) {
        let now = self.millis();
        self.progressed.store(now, Ordering::Relaxed);
        self.busy_since.store(now + 1, Ordering::Relaxed);
    }

    pub(crate) fn set_in_flight(&self, attempts: usize) {
        self.in_flight.store(attempts, Ordering::Relaxed);
    }

    /// Says whether the store answers; true where that is news.
    pub(crate) fn set_store_unreachable(&self, unreachable: bool) -> bool {
        self.store_unreachable.swap(unreachable, Ordering::Relaxed) != unreachable
    }

    pub(crate) fn mailbox_depth(&self) -> usize {
        self.mailbox.load(Ordering::Relaxed)
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Relaxed)
    }

    pub(crate) fn store_unreachable(&self) -> bool {
        self.store_unreachable.load(Ordering::Relaxed)
    }

    /// How long the present message, or the longest of the calls beside it, has taken; `None` while idle.
    pub(crate) fn busy_for(&self) -> Option<Duration> {
        let now = self.millis();
        let since = self.calling_since.iter().chain([&self.busy_since]).map(|since| since.load(Ordering::Relaxed));
        let longest = since.filter(|since| *since > 0).min()?;
        Some(Duration::from_millis(now.saturating_sub(longest - 1)))
    }

    /// Since a message was last finished, or since birth.
    pub(crate) fn since_progress(&self) -> Duration {
        Duration::from_millis(self.millis().saturating_sub(self.progressed.load(Ordering::Relaxed)))
    }
}

pub(crate) struct Handling(Arc<Vitals>);

impl Drop for Handling {
    fn drop(&mut self) {
        self.0.progressed.store(self.0.millis(), Ordering::Relaxed);
        self.0.busy_since.store(0, Ordering::Relaxed);
    }
}

pub(crate) struct Calling(Arc<Vitals>, Call);

impl Drop for Calling {
    fn drop(&mut self) {
        self.0.calling_since[self.1 as usize].store(0, Ordering::Relaxed);
    }
}

/// An actor's address together with its vitals, so that what waits in its mailbox is counted.
pub(crate) struct Inbox<M: Message> {
    actor: ActorRef<M>,
    vitals: Arc<Vitals>,
}

impl<M: Message> Clone for Inbox<M> {
    fn clone(&self) -> Self {
        Self { actor: self.actor.clone(), vitals: Arc::clone(&self.vitals) }
    }
}

impl<M: Message> Inbox<M> {
    pub(crate) fn new(actor: ActorRef<M>, vitals: Arc<Vitals>) -> Self {
        Self { actor, vitals }
    }

    pub(crate) fn vitals(&self) -> &Arc<Vitals> {
        &self.vitals
    }

    pub(crate) fn actor(&self) -> &ActorRef<M> {
        &self.actor
    }

    /// Puts a message into the mailbox; false where the actor is gone, which its supervisor will hear of.
    pub(crate) fn send(&self, message: M) -> bool {
        self.vitals.mailbox.fetch_add(1, Ordering::Relaxed);
        let sent = self.actor.send_message(message).is_ok();
        if !sent {
            let _ =
                self.vitals.mailbox.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| Some(n.saturating_sub(1)));
        }
        sent
    }

    /// Sends `message` after `wait`, unless the returned timer is dropped first.
    pub(crate) fn send_after(&self, wait: Duration, message: M) -> Timer {
        let inbox = self.clone();
        Timer(tokio::spawn(async move {
            tokio::time::sleep(wait).await;
            inbox.send(message);
        }))
    }
}

/// A pending message to oneself; dropped, it is never sent, so that no timer outlives its actor.
pub(crate) struct Timer(tokio::task::JoinHandle<()>);

impl Drop for Timer {
    fn drop(&mut self) {
        self.0.abort();
    }
}
