//! The real actor tree on the model queue under paused time: replicas, hosts, operators, receivers and faults, all drawn
//! from one seed, and the checker's judgement of what was seen.
//!
//! A failing seed prints the command that repeats it: `SIMULATION_SEED=1234 cargo test -p postrider-actors --features model
//! --test simulation replay`.
#![allow(clippy::unwrap_used)]

mod defects;
mod nemesis;
mod parts;
mod seeds;
mod world;
