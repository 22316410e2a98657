//! Messages and addresses as they stand on the wire, read back by parsers that share no code with what wrote them.

// A test that cannot go on says so by panicking.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod addresses;
mod body_checks;
mod cases;
mod corpus;
mod dkim;
mod header_checks;
mod numbers;
#[path = "../support/peer.rs"]
mod peer;
mod properties;
mod reader;
mod recipient_checks;
mod sample;
mod text_checks;
mod unsubscribe_checks;
mod wire;
