//! The supervised lease engine of Postrider: ractor and tokio, no SQL and no HTTP.
//!
//! ```text
//! supervisor
//! ├── channel "backchannel_logout"     one claimer, two senders; for each registered channel
//! │   ├── claimer        leases out, outcomes in: the only one that talks to the queue for its channel
//! │   ├── sender 0       performs attempts
//! │   └── sender 1
//! ├── cleanup            deletes and abandons by age
//! └── gauge              counts pending deliveries, audits the queue
//! ```
//!
//! Who tells whom what:
//!
//! ```text
//! sender  ── Register, Ask(free slots) ─────▶ claimer ── claim ──▶ Queue
//! sender  ◀─ Grant(leases) ────────────────── claimer
//! sender  ── attempt ──▶ Transport
//! sender  ── Ended(outcome) ────────────────▶ claimer ── record ─▶ Queue
//! sender  ◀─ Settled ──────────────────────── claimer             the slot is free again
//! ```
//!
//! Promised: a claimer never claims more than was asked for; an outcome is kept by its sender until it is settled; an
//! attempt is aborted with its sender; a queue that does not answer is a state and ends no actor; shutdown is bounded.
//! Not promised: that nothing is sent twice. An actor holds nothing that may not be lost; the lease then runs out and
//! another sends under the same delivery id.

mod audit;
mod backoff;
mod calls;
#[cfg(feature = "model")]
pub mod checker;
mod claimer;
mod config;
mod engine;
mod health;
mod ids;
#[cfg(feature = "model")]
pub mod laws;
mod messages;
#[cfg(feature = "model")]
pub mod model;
mod outcome;
mod periodic;
mod ports;
mod restarts;
mod sender;
mod store;
mod supervisor;
mod vitals;

pub use audit::{AuditPolicy, FindingCount, FindingKind};
pub use backoff::{Backoff, Jitter};
pub use config::{ConfigError, EngineConfig, RestartIntensity};
pub use engine::{Engine, EngineChannel, StartError};
pub use health::{ActorHealth, ActorState, ChannelHealth, ChildId, RestartReason, TreeHealth};
pub use ids::{ChannelName, ClaimToken, DeliveryId, MalformedId};
pub use messages::{SenderIndex, ShutdownReport};
pub use outcome::{Attempted, Outcome, Reason, ReplyCode, Settled, Status, UnknownReason, UnknownStatus, Verdict};
pub use ports::{
    ChannelPolicy, CleanedUp, Delivery, Ended, Lease, PendingCount, Queue, QueueError, Recorded, Retention, Search,
    Transport,
};
