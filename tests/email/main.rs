//! The channels `email` and `announcement`, from the event to the mailbox.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod announcements;
mod attempts;
mod club;
mod idp;
mod links;
mod notices;
mod other_tables;
#[path = "../support/mod.rs"]
mod support;
mod unsubscribe;
mod world;
