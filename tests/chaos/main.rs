//! Chaos on real parts: replicas as processes, a real PostgreSQL behind proxies, a real TLS receiver, and everything that
//! can break breaks. `make chaos` runs the short form, `make chaos LONG=1` the long one; `SEED=` plays a script again,
//! which is the same faults at the same times and not the same interleaving.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

#[path = "../outbound/support/ca.rs"]
mod ca;
mod channel;
mod clock;
mod cluster;
mod dice;
mod failover;
mod fleet;
mod gaps;
mod hosts;
mod journal;
mod judge;
mod nemesis;
mod operator;
mod processes;
mod proxy;
mod receiver;
mod record;
mod replica;
mod report;
mod scratch;
mod settings;
mod storm;
#[path = "../support/mod.rs"]
mod support;
mod worker_log;

/// The whole of it. What delivers is this test, run again in processes of its own.
#[test]
fn nothing_is_lost_unexplained_or_out_of_order_whatever_breaks() {
    if let Ok(orders) = std::env::var(replica::ORDERS) {
        return replica::run(&orders);
    }
    storm::run("nothing_is_lost_unexplained_or_out_of_order_whatever_breaks");
}

/// Replicas of their own, as above.
#[test]
fn a_failover_to_a_synchronous_standby_loses_nothing_acknowledged_and_keeps_order() {
    if let Ok(orders) = std::env::var(replica::ORDERS) {
        return replica::run(&orders);
    }
    failover::run("a_failover_to_a_synchronous_standby_loses_nothing_acknowledged_and_keeps_order");
}
