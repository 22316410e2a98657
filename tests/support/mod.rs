//! What integration tests share: a database for each test, and waiting for a condition.
//!
//! ```ignore
//! mod support; // in tests/some_test/main.rs: #[path = "../support/mod.rs"] mod support;
//!
//! #[tokio::test]
//! async fn a_committed_event_has_its_deliveries() {
//!     let database = support::database().await;
//!     let mut connection = database.connect().await;
//!     // ...
//! }
//! ```
//!
//! The databases are made in the cluster that `POSTRIDER_TEST_DATABASE_URL` names (`scripts/with-postgres.sh` starts
//! one and sets it), or else in a private one that each test process starts for itself and ends. In a cluster of
//! one's own the template stays behind (`postrider_template_*`), and so do the databases (`t_*`) of tests that were
//! killed.
// Each test uses a part of it.
#![allow(dead_code, unused_imports)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod cluster;
mod database;
pub mod relay;

use std::time::{Duration, Instant};

pub use cluster::migrate;
pub use database::{TestDatabase, database, empty_database};

/// Polls `condition` until it holds; panics with `description` if it does not within `deadline`. The one way for a
/// test to wait for something that it has no signal for.
pub async fn eventually(deadline: Duration, description: &str, mut condition: impl AsyncFnMut() -> bool) {
    let started = Instant::now();
    while !condition().await {
        assert!(started.elapsed() < deadline, "not within {deadline:?}: {description}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
