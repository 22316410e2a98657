//! Many seeds, each a run of its own; and one of them again, exactly.

use std::collections::BTreeMap;

use postrider_actors::checker::Cause;

use crate::nemesis::KINDS;
use crate::world::{Gap, run};

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap())
}

/// Runs so many seeds from `first` on two threads, and shows each that fails.
fn seeds(first: u64, count: u64) {
    let threads = 2;
    let outcomes: Vec<_> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|thread| {
                scope.spawn(move || {
                    (first + thread..first + count)
                        .step_by(threads as usize)
                        .map(|seed| (seed, run(seed, None)))
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    let (mut faults, mut hits, mut repeats) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    let (mut failed, mut receipts, mut late) = (Vec::new(), 0, 0);
    for (seed, outcome) in outcomes {
        outcome.report.faults.iter().for_each(|(kind, count)| *faults.entry(kind.clone()).or_default() += count);
        outcome.hits.iter().for_each(|(gap, count)| *hits.entry(*gap).or_default() += count);
        outcome.report.repeats.iter().for_each(|(cause, count)| *repeats.entry(*cause).or_default() += count);
        receipts += outcome.report.receipts;
        late += outcome.report.late_repeats;
        if !outcome.report.violations.is_empty() {
            eprintln!("seed {seed}:\n{}", outcome.report);
            eprintln!("again: make simulate SEED={seed}");
            failed.push(seed);
        }
    }
    println!("{count} seeds: {receipts} receipts, repeats {repeats:?}, {late} late; faults {faults:?}; gaps {hits:?}");
    assert!(failed.is_empty(), "{} of {count} seeds failed: {failed:?}", failed.len());
    // Too few of anything, and nothing is shown of it.
    let least = count as usize / 20;
    for kind in KINDS {
        assert!(faults.get(kind).copied().unwrap_or(0) >= least, "too few faults of the kind {kind:?}");
    }
    for gap in Gap::ALL {
        assert!(hits.get(&gap).copied().unwrap_or(0) >= least as u64, "too few faults in the gap {gap:?}");
    }
    for cause in [Cause::ReceiverAsked, Cause::AnswerLost, Cause::Unrecorded, Cause::Operator] {
        assert!(repeats.get(&cause).copied().unwrap_or(0) > 0, "no repeat with the cause {cause:?}");
    }
    assert!(late > 0, "no late repeat");
}

#[test]
fn every_promise_is_kept_under_faults_first_quarter() {
    seeds(1, number("SIMULATION_SEEDS").map_or(500, |seeds| seeds / 4));
}

#[test]
fn every_promise_is_kept_under_faults_second_quarter() {
    seeds(1_000_000, number("SIMULATION_SEEDS").map_or(500, |seeds| seeds / 4));
}

#[test]
fn every_promise_is_kept_under_faults_third_quarter() {
    seeds(2_000_000, number("SIMULATION_SEEDS").map_or(500, |seeds| seeds / 4));
}

#[test]
fn every_promise_is_kept_under_faults_fourth_quarter() {
    seeds(3_000_000, number("SIMULATION_SEEDS").map_or(500, |seeds| seeds / 4));
}

/// One seed again: that of `SIMULATION_SEED`, or the first.
#[test]
fn replay_of_one_seed() {
    let seed = number("SIMULATION_SEED").unwrap_or(1);
    let outcome = run(seed, None);
    println!("seed {seed}, trace {:016x}\n{}", outcome.trace(), outcome.report);
    assert!(outcome.report.violations.is_empty(), "seed {seed} failed:\n{}", outcome.report);
}

#[test]
fn the_same_seed_is_the_same_run() {
    let traces = |seed| (run(seed, None).trace(), run(seed, None).trace());
    for seed in 1..=60 {
        let (one, other) = traces(seed);
        assert_eq!(one, other, "seed {seed}");
    }
    assert_ne!(run(1, None).trace(), run(2, None).trace());
}
