//! The queue and the actor tree on a real PostgreSQL.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod abandonment;
mod audit;
mod backlog;
mod deadlocks;
mod effects;
mod embedding;
mod harness;
mod interleavings;
mod limits;
mod migrations;
mod networks;
mod one_key;
mod open_transactions;
mod outcome_vectors;
mod pages;
mod plans;
mod scripted;
mod supervision;
#[path = "../support/mod.rs"]
mod support;

#[path = "../outbound/support/vectors.rs"]
mod vectors;

mod laws_of_the_queue {
    postrider_actors::queue_laws!(
        #[tokio::test]
        crate::harness::postgres
    );
}

mod laws_of_the_tree {
    postrider_actors::tree_laws!(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        crate::harness::postgres
    );
}
