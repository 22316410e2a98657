#![doc = include_str!("../README.md")]
//! # Where to look
//!
//! [`Recorder::record`] is what a request calls, [`Subsystem`] what delivers; [`Channel`], [`Event`] and
//! [`directory::Directory`] are what a host implements; [`queue`] is what operators do; [`actors`] is the supervised
//! engine, without SQL and HTTP.

pub mod channel;
pub mod channels;
#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod cli;
pub mod content;
pub mod delivery;
#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod demo;
pub mod directory;
pub mod event;
pub mod identity;
pub mod links;
pub mod mail;
mod metrics;
pub mod outbound;
pub mod pooler;
#[cfg(feature = "cli")]
pub mod private_postgres;
pub mod queue;
pub mod recorder;
pub mod signing;
pub mod subsystem;
#[cfg(feature = "http")]
pub mod unsubscribe;
mod wake;

pub use channel::{Channel, Channels, Page};
pub use delivery::{InvalidDelivery, NewDelivery};
pub use event::{Event, Occurred};
pub use queue::{check_schema, migrate};
pub use recorder::{RecordError, Recorded, Recorder};
pub use subsystem::{Health, SetupError, Subsystem, SubsystemConfig};

pub use postrider_actors as actors;
