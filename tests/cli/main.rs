//! The `postrider` program, run as operators run it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod announce;
mod audit;
mod bad_settings;
#[path = "../outbound/support/ca.rs"]
mod ca;
mod deliveries;
mod docs;
mod email;
mod exit_codes;
mod keys;
mod mail;
mod migrate;
mod private_database;
mod program;
#[path = "../outbound/support/receiver.rs"]
#[allow(dead_code)]
mod receiver;
mod serve;
mod serve_ends;
#[path = "../support/mod.rs"]
mod support;
mod world;
