//! The reference domain's mail side: links and their keys, addresses, recoveries, inboxes, announcements, and what the
//! channels read of them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod link_key_files;
mod link_tokens;
mod pages;
mod unsubscribe_tokens;

#[path = "../support/mod.rs"]
mod support;
