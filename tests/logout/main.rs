//! The channel backchannel_logout end to end: reference domain, PostgreSQL, actors, real HTTPS receivers.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod domain;
mod guarantees;
mod request;
mod world;

#[allow(dead_code, unused_imports)]
#[path = "../outbound/support/mod.rs"]
mod receivers;
#[path = "../support/mod.rs"]
mod support;
