//! Judges a run by what was seen of it from outside: nothing lost, nothing out of order, no repeat without a cause.
//!
//! [`check`] is a pure function of a [`History`]. It knows nothing of how the queue works, only what it promises.

mod history;
mod journal;
mod repeats;
mod report;
mod view;

use std::collections::BTreeMap;
use std::time::Duration;

pub use history::{
    Act, ActResult, Answer, Commit, DatabaseTime, Fate, Fault, History, Moment, OperatorAct, Receipt, RowState, Scope,
    Settlement, Transition, Worker,
};
pub use report::{Cause, Report, Violation};

use view::View;

/// What a run may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    /// An attempt's whole time: a fault this long before a receipt, or after, can have spoilt its answer.
    pub send_timeout: Duration,
    /// Once faults have ended nothing may be due, or held past its lease, for longer.
    pub drained_within: Duration,
    /// Whether deliveries may pass MAX_AGE, and so fail without a refusal.
    pub expires: bool,
    /// Whether cleanup runs over what is past retention, and so cancels what waits behind an old failure.
    pub abandons: bool,
    /// How many faults of which kind there must have been, or nothing is proven.
    pub wanted_faults: BTreeMap<String, usize>,
}

/// Judges a run.
pub fn check(history: &History, rules: &Rules) -> Report {
    let view = View::new(history);
    let mut report = Report::new(history);
    view::existence(&view, &mut report);
    journal::legality(&view, rules, &mut report);
    journal::order(&view, &mut report);
    journal::settlements(&view, &mut report);
    journal::endings(&view, rules, &mut report);
    repeats::receipts(&view, rules, &mut report);
    repeats::first_arrivals(&view, &mut report);
    for (kind, wanted) in &rules.wanted_faults {
        let hits = report.faults.get(kind).copied().unwrap_or(0);
        if hits < *wanted {
            report.violations.push(Violation::Vacuous { fault: kind.clone(), hits, wanted: *wanted });
        }
    }
    report
}
