//! Messages handed to relays that are scripted, in clear and under TLS, all on loopback.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod cases;
mod connections;
mod mail;
mod outcomes;
mod relays;
mod script;
mod secrecy;
mod session;
mod tls;

#[allow(dead_code, unused_imports)]
#[path = "../outbound/support/mod.rs"]
mod outbound;
