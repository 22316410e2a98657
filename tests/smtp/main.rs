//! Messages handed to relays that are scripted, in clear and under TLS, all on loopback.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod mail;
mod outcomes;
mod script;

#[allow(dead_code, unused_imports)]
#[path = "../outbound/support/mod.rs"]
mod outbound;
