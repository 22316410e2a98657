//! What e-mails say: every content rendered, in both twins, and looked at as a mail client would.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod contrast;
mod escaping;
mod page;
mod rendering;
mod storage;
mod support;
