//! Postrider with servers that others wrote: they run for one test, on loopback, in folders of their own.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod apache;
mod browser;
mod harness;
mod host;
mod postfix;
mod provider;
mod relying_party;

#[allow(dead_code, unused_imports)]
#[path = "../outbound/support/mod.rs"]
mod receivers;
#[path = "../support/mod.rs"]
mod support;
#[allow(dead_code)]
#[path = "../logout/world.rs"]
mod world;
