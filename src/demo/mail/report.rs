//! The second table: each kind of message, what should have arrived and what did.

use std::fmt;

use super::super::report::{Differences, verdict};
use super::expected::Kind;
use super::facts::Facts;

/// What came of the second act. Its `Display` is a table for people, in 100 columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MailReport {
    /// One for each kind of message.
    pub lines: Vec<MailLine>,
}

/// One kind of message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MailLine {
    /// Which.
    pub kind: Kind,
    /// How many should arrive.
    pub expected: usize,
    /// How many did.
    pub arrived: usize,
    /// How many must not arrive, and why, in words.
    pub unsent: String,
    /// What is not as expected; empty: nothing.
    pub differences: Vec<String>,
}

impl MailReport {
    pub(super) fn new(facts: &Facts) -> Self {
        let lines = Kind::ALL.into_iter().map(|kind| MailLine::new(facts, kind));
        let shown = |line: &MailLine| line.kind != Kind::Other || !line.differences.is_empty();
        Self { lines: lines.filter(shown).collect() }
    }

    /// Whether anything is not as expected.
    pub fn differs(&self) -> bool {
        self.lines.iter().any(|line| !line.differences.is_empty())
    }
}

impl MailLine {
    fn new(facts: &Facts, kind: Kind) -> Self {
        let missing = facts.expected.missing.iter().filter(|((of, _), _)| *of == kind);
        let unsent: Vec<String> = missing.map(|((_, why), number)| format!("{number} {why}")).collect();
        Self {
            kind,
            expected: facts.expected.arrivals(kind),
            arrived: facts.arrived(kind).count(),
            unsent: unsent.join(", "),
            differences: facts.differences(kind),
        }
    }
}

impl fmt::Display for MailReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [kind, expected, arrived, unsent] = ["e-mail", "expected", "arrived", "not sent, and why"];
        writeln!(f, "{kind:22} {expected:>8} {arrived:>8}  {unsent}")?;
        self.lines.iter().try_for_each(|line| line.fmt(f))
    }
}

impl fmt::Display for MailLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, expected, arrived, unsent, differences } = self;
        let verdict = verdict(!differences.is_empty());
        writeln!(f, "{kind:22} {expected:>8} {arrived:>8}  {unsent:50} {verdict}")?;
        Differences(differences).fmt(f)
    }
}
