//! Every message of the tree on one page.

use ractor::ActorId;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::calls::{Answer, Call};
use crate::health::ChildId;
use crate::ids::{ChannelName, ClaimToken, DeliveryId};
use crate::ports::{Ended, Lease};
use crate::vitals::Inbox;

/// Which of a channel's two senders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SenderIndex(pub(crate) u8);

impl SenderIndex {
    /// Both senders of a channel.
    pub const BOTH: [Self; 2] = [Self(0), Self(1)];
}

/// A lease with the instant before its claim was asked for: the lease ends no sooner than `claimed_at` + its time.
#[derive(Debug, Clone)]
pub(crate) struct Granted {
    pub(crate) lease: Lease,
    pub(crate) claimed_at: Instant,
}

/// An ended attempt on its way to the queue.
#[derive(Debug, Clone)]
pub(crate) struct Unrecorded<E> {
    pub(crate) ended: Ended<E>,
    pub(crate) claimed_at: Instant,
    pub(crate) sender: SenderIndex,
}

pub(crate) enum ClaimerMsg<E: Send + Sync + 'static> {
    /// A sender is there, with this many free slots: forgets what was known of it.
    Register { sender: SenderIndex, inbox: Inbox<SenderMsg<E>>, free_slots: usize },
    /// A sender has this many more free slots.
    Ask { sender: SenderIndex, actor: ActorId, free_slots: usize },
    /// A sender died; no lease is granted to it.
    SenderGone { sender: SenderIndex, actor: ActorId },
    /// An attempt ended.
    Ended(Unrecorded<E>),
    /// A lease whose attempt never began.
    GiveBack { sender: SenderIndex, delivery: DeliveryId, token: ClaimToken },
    /// Something may have become due.
    Hint,
    /// Look, hint or not.
    Poll,
    /// A call to the queue is over; without an answer, it panicked.
    Answered(Call, Option<Answer<E>>),
    /// Record what ended, and claim for the free slots.
    Step,
    /// Claim no more.
    Drain,
}

pub(crate) enum SenderMsg<E: Send + Sync + 'static> {
    /// Leases for free slots.
    Grant(Vec<Granted>),
    /// An attempt of this sender ended.
    AttemptEnded(Unrecorded<E>),
    /// These are recorded, lost or given up: their slots are free.
    Settled(Vec<ClaimToken>),
    /// The channel has a new claimer.
    NewClaimer(Inbox<ClaimerMsg<E>>),
    /// Begin no more attempts; say when the last one is settled.
    Drain,
}

pub(crate) enum PeriodicMsg {
    /// Do the periodic work now.
    Tick,
}

pub(crate) enum SupervisorMsg {
    /// Something may have become due in this channel.
    Hint(ChannelName),
    /// Start the child again.
    Respawn(ChildId),
    /// Look for stuck children.
    Watch,
    /// A sender has nothing under way any more.
    Drained { child: ChildId, actor: ActorId },
    /// Stop in order; answered when it is done.
    ShutDown(oneshot::Sender<ShutdownReport>),
    /// The shutdown deadline has passed.
    ShutdownDeadline,
    /// Ends one child, as a failure would: for tests of supervision and for chaos.
    Kill(ChildId),
}

/// How a shutdown went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShutdownReport {
    /// Attempts that had to be aborted at the deadline; their leases run out and another sends them again.
    pub aborted_attempts: usize,
}
