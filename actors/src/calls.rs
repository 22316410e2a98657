//! A claimer's calls to the queue: at most one of each kind under way, each a task that the claimer's state owns.
//!
//! So recordings wait for no claim and claims for no recording, and both end with the claimer, however it ends.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use crate::ids::{ClaimToken, DeliveryId};
use crate::messages::{ClaimerMsg, SenderIndex, Unrecorded};
use crate::ports::{Lease, QueueError, Recorded, Search};
use crate::vitals::Inbox;

/// What is asked of the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    GiveBack,
    Record,
    Claim,
}

impl Call {
    pub(crate) const KINDS: usize = 3;

    const fn during(self) -> &'static str {
        match self {
            Self::GiveBack => "giving leases back",
            Self::Record => "recording outcomes",
            Self::Claim => "claiming",
        }
    }
}

/// A lease that nobody began to send, and whose slot it takes up.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unstarted {
    pub(crate) sender: Option<SenderIndex>,
    pub(crate) delivery: DeliveryId,
    pub(crate) token: ClaimToken,
}

/// What was asked, and what came of it.
pub(crate) enum Answer<E> {
    GivenBack { leases: Vec<Unstarted>, answer: Result<(), QueueError> },
    Recorded { batch: Vec<Unrecorded<E>>, answer: Result<Recorded, QueueError> },
    Claimed { search: Search, slots: usize, claimed_at: Instant, answer: Result<Vec<Lease>, QueueError> },
}

pub(crate) struct Calls<E: Send + Sync + 'static> {
    me: Inbox<ClaimerMsg<E>>,
    deadline: Duration,
    tasks: JoinSet<()>,
    under_way: [bool; Call::KINDS],
}

impl<E: Send + Sync + 'static> Calls<E> {
    pub(crate) fn new(me: Inbox<ClaimerMsg<E>>, deadline: Duration) -> Self {
        Self { me, deadline, tasks: JoinSet::new(), under_way: [false; Call::KINDS] }
    }

    pub(crate) fn under_way(&self, call: Call) -> bool {
        self.under_way[call as usize]
    }

    /// Makes the call within its deadline; the claimer is sent what came of it, as `answer` puts it.
    pub(crate) fn make<T: Send + 'static>(
        &mut self,
        call: Call,
        asking: impl Future<Output = Result<T, QueueError>> + Send + 'static,
        answer: impl FnOnce(Result<T, QueueError>) -> Answer<E> + Send + 'static,
    ) {
        self.under_way[call as usize] = true;
        let reply = Reply { me: self.me.clone(), call, answer: None };
        let (vitals, during, deadline) = (Arc::clone(self.me.vitals()), call.during(), self.deadline);
        self.tasks.spawn(async move {
            let mut reply = reply; // all of it, so that it drops when this ends
            let _calling = vitals.calling(call);
            let asked = timeout(deadline, asking).await;
            reply.answer = Some(answer(asked.unwrap_or(Err(QueueError::TimedOut { during, deadline }))));
        });
    }

    /// The claimer has heard of its end.
    pub(crate) fn over(&mut self, call: Call) {
        self.under_way[call as usize] = false;
        while self.tasks.try_join_next().is_some() {}
    }
}

/// Tells the claimer when it drops: the answer, or that the call panicked.
struct Reply<E: Send + Sync + 'static> {
    me: Inbox<ClaimerMsg<E>>,
    call: Call,
    answer: Option<Answer<E>>,
}

impl<E: Send + Sync + 'static> Drop for Reply<E> {
    fn drop(&mut self) {
        let answer = self.answer.take();
        if answer.is_some() || std::thread::panicking() {
            self.me.send(ClaimerMsg::Answered(self.call, answer));
        }
    }
}
