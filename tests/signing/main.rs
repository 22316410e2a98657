//! Signing: keys, the published set, the logout token and its form, checked against the documents and against two
//! libraries that are not ours (jsonwebtoken in this process, joserfc in another).

// A test that cannot go on says so by panicking.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod checker;
mod forge;
mod key_files;
mod key_generation;
mod logout_token_checks;
mod mutations;
mod peer;
#[path = "../support/peer.rs"]
mod python;
mod rotation;
mod secrecy;
mod support;
