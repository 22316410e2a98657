//! The reference domain's mail side: links and their keys, addresses, recoveries, inboxes, announcements, and what the
//! channels read of them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod addresses;
mod announcements;
mod directory;
mod inboxes;
mod link_key_files;
mod link_tokens;
mod look_ups;
mod many_recipients;
mod migration;
mod pages;
mod purge;
mod recoveries;
mod unsubscribe_tokens;
mod world;

#[path = "../support/mod.rs"]
mod support;
