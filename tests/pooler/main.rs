//! What stands between the actors and PostgreSQL is found out, with a real PgBouncer in each of its modes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod accepted;
mod bouncer;
mod channel;
mod host;
mod load;
mod program;
mod refused;
#[path = "../support/mod.rs"]
mod support;
