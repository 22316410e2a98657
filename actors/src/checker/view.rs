//! The history sorted by delivery, and what exists in it at all.

use std::collections::BTreeMap;

use super::history::{Commit, Fate, History, Receipt, Transition};
use super::report::{Report, Violation};
use crate::ids::DeliveryId;

/// One delivery, from all sides.
#[derive(Debug, Default)]
pub(super) struct Life<'a> {
    pub(super) commit: Option<&'a Commit>,
    pub(super) transitions: Vec<&'a Transition>,
    /// By time.
    pub(super) receipts: Vec<&'a Receipt>,
}

pub(super) struct View<'a> {
    pub(super) history: &'a History,
    pub(super) lives: BTreeMap<DeliveryId, Life<'a>>,
}

impl<'a> View<'a> {
    pub(super) fn new(history: &'a History) -> Self {
        let mut lives: BTreeMap<DeliveryId, Life<'a>> = BTreeMap::new();
        for commit in &history.commits {
            lives.entry(commit.delivery).or_default().commit = Some(commit);
        }
        for transition in &history.transitions {
            lives.entry(transition.delivery).or_default().transitions.push(transition);
        }
        for receipt in &history.receipts {
            lives.entry(receipt.delivery).or_default().receipts.push(receipt);
        }
        lives.values_mut().for_each(|life| life.receipts.sort_by_key(|receipt| receipt.at));
        Self { history, lives }
    }
}

/// What was committed is there, what was rolled back never was, and nothing comes from nowhere.
pub(super) fn existence(view: &View<'_>, report: &mut Report) {
    for (&delivery, life) in &view.lives {
        let inserted = life.transitions.first().is_some_and(|first| first.before.is_none());
        let seen = inserted || !life.receipts.is_empty();
        let violation = match life.commit.map(|commit| commit.fate) {
            Some(Fate::Committed) if !inserted => Violation::Lost { delivery },
            Some(Fate::RolledBack) if seen => Violation::RolledBackYetThere { delivery },
            Some(Fate::Unknown) if !inserted && seen => Violation::Phantom { delivery },
            None => Violation::Phantom { delivery },
            Some(_) => continue,
        };
        report.violations.push(violation);
    }
}
