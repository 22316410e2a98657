//! The checker checked: every deliberate defect of the queue is found, and by the rule that it breaks.

use std::collections::BTreeSet;

use postrider_actors::model::Defect;

use crate::world::run;

const MOST_SEEDS: u64 = 300;

/// The violation that must be found, whatever else is.
fn breaks(defect: Defect) -> &'static str {
    match defect {
        Defect::RecordWithoutToken | Defect::TokenKept => "IllegalChange",
        Defect::LateOutcomeOverwrites | Defect::RecordedInNameOnly => "RecordedWithoutHolding",
        Defect::ClaimPastHead | Defect::FailureReleasesKey | Defect::SequenceOrder | Defect::RetryMovesToTheEnd => {
            "ClaimedOutOfTurn"
        }
        Defect::HeldKeyIgnored => "ClaimedUnderAnothersLease",
        Defect::ClaimBeforeLeaseEnds => "ClaimedWhileHeld",
        Defect::ClaimBeforeDue => "ClaimedBeforeDue",
        Defect::AttemptNotCounted => "SentWithoutClaim",
        Defect::LeaseByAnothersClock | Defect::SucceededClaimedAgain => "UnexplainedRepeat",
        Defect::LapsedNeverReclaimed | Defect::NextNotWoken => "Stuck",
        Defect::FirstOutcomeForAll | Defect::RetryEndsIt => "SucceededUnsent",
        Defect::GivenBackDropped | Defect::CancelKeepsClaim => "IllegalChange",
        Defect::CancelDropped => "ActWithoutEffect",
        Defect::RolledBackVisible => "RolledBackYetThere",
        Defect::CommitLost => "Lost",
    }
}

/// Runs this one from the first seed on until the rule it breaks finds it.
fn found(defect: Defect) -> Option<String> {
    let mut others = BTreeSet::new();
    (1..=MOST_SEEDS).find_map(|seed| {
        let kinds: BTreeSet<String> = run(seed, Some(defect)).report.violations.iter().map(|one| one.kind()).collect();
        let by_its_rule = kinds.contains(breaks(defect));
        others.extend(kinds.into_iter().filter(|kind| kind != breaks(defect)));
        let others = || others.iter().cloned().collect::<Vec<_>>().join(", ");
        by_its_rule.then(|| format!("{:<24} {:<28} {seed:<6} {}", format!("{defect:?}"), breaks(defect), others()))
    })
}

#[test]
fn every_seeded_defect_is_found_by_the_rule_it_breaks() {
    println!("{:<24} {:<28} {:<6} also found by", "defect", "found by", "seeds");
    let mut missed = Vec::new();
    for defect in Defect::ALL {
        match found(defect) {
            Some(line) => println!("{line}"),
            None => missed.push(defect),
        }
    }
    assert!(missed.is_empty(), "not found: {missed:?}");
}
