//! Outbound HTTPS against real TLS receivers and a real DNS server, all on loopback.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod addresses;
mod cases_addresses;
mod cases_http;
mod https;
mod kept;
mod outcomes;
mod resolution;
mod retry_after;
mod support;
mod urls;
