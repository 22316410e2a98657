//! Postrider with servers that others wrote: they run for one test, on loopback, in folders of their own.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod apache;
mod browser;
mod delivered;
mod harness;
mod host;
mod mailing;
mod postfix;
mod provider;
mod relay;
mod relying_party;

#[allow(dead_code)]
#[path = "../email/world.rs"]
mod email_world;
#[path = "../support/peer.rs"]
mod peer;
#[allow(dead_code)]
#[path = "../mail/reader.rs"]
mod reader;
#[allow(dead_code, unused_imports)]
#[path = "../outbound/support/mod.rs"]
mod receivers;
#[allow(dead_code)]
#[path = "../mail/sample.rs"]
mod sample;
#[path = "../support/mod.rs"]
mod support;
#[allow(dead_code)]
#[path = "../logout/world.rs"]
mod world;
