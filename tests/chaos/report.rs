//! What a run came to, for people.

use std::collections::BTreeMap;
use std::fmt::{self, Debug, Display};
use std::time::Duration;

use crate::gaps::Gap;
use crate::hosts::{Commit, Fate};
use crate::operator::Act;
use crate::receiver::{Answer, Received};
use crate::record::{Fault, FaultKind};
use crate::settings::Size;

pub struct Summary {
    pub size: Size,
    pub commits: Vec<Commit>,
    pub acts: Vec<Act>,
    pub faults: Vec<Fault>,
    pub received: Vec<Received>,
    pub gaps: BTreeMap<Gap, usize>,
    pub processes: u32,
    pub turned_away: u64,
    pub drained_in: Duration,
    pub drain_deadline: Duration,
}

fn counted<T: Ord>(all: impl IntoIterator<Item = T>) -> BTreeMap<T, usize> {
    let mut counts = BTreeMap::new();
    for one in all {
        *counts.entry(one).or_default() += 1;
    }
    counts
}

struct Row<'a, T>(&'a str, &'a BTreeMap<T, usize>);

impl<T: Debug> Display for Row<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<12}", self.0)?;
        for (index, (what, count)) in self.1.iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            write!(f, "{separator}{what:?} {count}")?;
        }
        writeln!(f)
    }
}

impl Summary {
    fn faults(&self) -> BTreeMap<FaultKind, usize> {
        counted(self.faults.iter().map(|fault| fault.kind))
    }

    /// What should have happened in the run and never did: it would prove nothing.
    pub fn missing(&self) -> Vec<String> {
        let least = if self.size.long { 20 } else { 1 };
        let faults = self.faults();
        let kinds =
            FaultKind::ALL.into_iter().filter(|kind| !faults.contains_key(kind)).map(|kind| format!("{kind:?}"));
        let hits = |gap: &Gap| self.gaps.get(gap).copied().unwrap_or_default();
        let gaps = Gap::ALL.into_iter().filter(|gap| hits(gap) < least).map(|gap| format!("{gap:?} ({})", hits(&gap)));
        let answers = counted(self.received.iter().map(|one| one.answer));
        let wanted = [Answer::Success, Answer::Retry, Answer::Refuse, Answer::Nothing];
        let answers =
            wanted.into_iter().filter(move |answer| !answers.contains_key(answer)).map(|one| format!("{one:?}"));
        let fates = counted(self.commits.iter().map(|commit| commit.fate));
        let wanted = [Fate::Committed, Fate::RolledBack, Fate::Unknown];
        let fates = wanted.into_iter().filter(move |fate| !fates.contains_key(fate)).map(|one| format!("{one:?}"));
        kinds.chain(gaps).chain(answers).chain(fates).collect()
    }
}

impl Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let form = if self.size.long { "long" } else { "short" };
        writeln!(f, "chaos, {form} form, seed {}", self.size.seed)?;
        write!(f, "{}", Row("recorded", &counted(self.commits.iter().map(|commit| commit.fate))))?;
        write!(f, "{}", Row("operators", &counted(self.acts.iter().map(|act| (act.kind, act.result)))))?;
        write!(f, "{}", Row("faults", &self.faults()))?;
        writeln!(
            f,
            "{:<12}{} replicas started; {} connections turned away by the receiver",
            "", self.processes, self.turned_away
        )?;
        write!(f, "{}", Row("receipts", &counted(self.received.iter().map(|one| one.answer))))?;
        write!(f, "{}", Row("leases lost", &self.gaps))?;
        writeln!(f, "{:<12}in {:.1?}, of at most {:.1?}", "drained", self.drained_in, self.drain_deadline)
    }
}
