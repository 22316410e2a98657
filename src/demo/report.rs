//! The table at the end: each receiver's outcome beside the one that was expected.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use uuid::Uuid;

use super::cast::{Attempts, Expectation};
use super::facts::{Facts, ending, endings};
use super::mail::MailReport;
use super::plan::Fate;

/// What a demo found, compared with what it expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DemoReport {
    /// The first act: sessions end.
    pub logout: LogoutReport,
    /// The second: e-mail.
    pub mail: MailReport,
    /// Attempts that the shutdown at the end had to abort.
    pub attempts_aborted: usize,
    /// How long it took.
    pub took: Duration,
}

impl DemoReport {
    /// Whether anything is not as expected.
    pub fn differs(&self) -> bool {
        self.logout.differs() || self.mail.differs()
    }
}

/// What came of the sessions' ends. Its `Display` is a table for people, in 100 columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogoutReport {
    /// One for each receiver.
    pub receivers: Vec<ReceiverReport>,
    /// Sessions whose clients must not have heard of anything.
    pub silent: Vec<SilentSessions>,
    /// Logout tokens that receivers read and found good.
    pub tokens_accepted: usize,
    /// Requests that a receiver found anything wrong with.
    pub requests_refused: usize,
}

/// One receiver's part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceiverReport {
    /// Its name.
    pub receiver: &'static str,
    /// What it does.
    pub does: String,
    /// Deliveries to it.
    pub deliveries: usize,
    /// Attempts of all of them.
    pub attempts: u32,
    /// How often it was sent a jti that it had read before.
    pub duplicates: usize,
    /// The end that each delivery should come to.
    pub expected: String,
    /// The ends that they came to.
    pub found: String,
    /// What is not as expected; empty: nothing.
    pub differences: Vec<String>,
}

/// Sessions that did not end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SilentSessions {
    /// Why nobody may hear of them.
    pub why: &'static str,
    /// How many there are.
    pub sessions: usize,
    /// Tokens that came about them.
    pub receipts: usize,
    /// Deliveries about them that are recorded.
    pub deliveries: usize,
}

impl LogoutReport {
    /// Whether anything is not as expected.
    pub fn differs(&self) -> bool {
        self.requests_refused > 0
            || self.silent.iter().any(SilentSessions::differs)
            || self.receivers.iter().any(|receiver| !receiver.differences.is_empty())
    }

    pub(super) fn new(facts: &Facts<'_>) -> Self {
        Self {
            receivers: (0..facts.cast.len()).filter_map(|position| ReceiverReport::new(facts, position)).collect(),
            silent: vec![
                SilentSessions::new(facts, "rolled back", Fate::RolledBack),
                SilentSessions::new(facts, "still signed in", Fate::Kept),
            ],
            tokens_accepted: facts.receipts.len(),
            requests_refused: facts.complaints.len(),
        }
    }
}

impl ReceiverReport {
    fn new(facts: &Facts<'_>, position: usize) -> Option<Self> {
        let role = facts.cast.get(position)?;
        Some(Self {
            receiver: role.name,
            does: role.does.clone(),
            deliveries: facts.deliveries_of(position).count(),
            attempts: facts.deliveries_of(position).map(|delivery| delivery.attempts).sum(),
            duplicates: facts.receipts_of(position).filter(|receipt| receipt.seen > 1).count(),
            expected: role.expected.to_string(),
            found: endings(facts.deliveries_of(position)),
            differences: facts.differences(position, role),
        })
    }
}

impl SilentSessions {
    fn new(facts: &Facts<'_>, why: &'static str, fate: Fate) -> Self {
        let sids: BTreeSet<Uuid> = facts.sids(fate);
        let receipts = facts.receipts.iter().filter(|receipt| sids.contains(&receipt.sid)).count();
        let about = |sid: Option<Uuid>| sid.is_some_and(|sid| sids.contains(&sid));
        let deliveries = facts.deliveries.iter().filter(|delivery| about(delivery.sid)).count();
        Self { why, sessions: sids.len(), receipts, deliveries }
    }

    const fn differs(&self) -> bool {
        self.receipts > 0 || self.deliveries > 0
    }
}

impl fmt::Display for Expectation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&ending(self.status, self.reason.map(|reason| reason.to_string()).as_deref()))?;
        match self.attempts {
            Attempts::Exactly(attempts) => write!(f, " in {attempts}"),
            Attempts::AtLeast(attempts) => write!(f, " in {attempts}+"),
        }
    }
}

/// `1 session`, `2 sessions`.
fn count(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

pub(super) const fn verdict(differs: bool) -> &'static str {
    if differs { "DIFFERS" } else { "ok" }
}

impl fmt::Display for LogoutReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let titles = ["receiver", "what it does", "deliv.", "tries", "dupl.", "expected", "found"];
        let [receiver, does, deliveries, attempts, duplicates, expected, found] = titles;
        writeln!(f, "{receiver:8} {does:24} {deliveries:>6} {attempts:>5} {duplicates:>5} {expected:18} {found}")?;
        for receiver in &self.receivers {
            receiver.fmt(f)?;
        }
        writeln!(f)?;
        for silent in &self.silent {
            let SilentSessions { why, sessions, receipts, deliveries } = silent;
            let line = format!(
                "{why}: {}, {}, {}",
                count(*sessions, "session", "sessions"),
                count(*receipts, "receipt", "receipts"),
                count(*deliveries, "delivery", "deliveries")
            );
            writeln!(f, "{line:92} {}", verdict(silent.differs()))?;
        }
        let (good, bad) = (self.tokens_accepted, self.requests_refused);
        let line = format!("receivers verified {good} logout tokens; requests that they found fault with: {bad}");
        writeln!(f, "{line:92} {}", verdict(bad > 0))
    }
}

impl fmt::Display for ReceiverReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { receiver, does, deliveries, attempts, duplicates, expected, found, differences } = self;
        let verdict = verdict(!differences.is_empty());
        writeln!(
            f,
            "{receiver:8} {does:24} {deliveries:>6} {attempts:>5} {duplicates:>5} {expected:18} {found:20} {verdict}"
        )?;
        Differences(differences).fmt(f)
    }
}

/// The first few differences below their line.
pub(super) struct Differences<'a>(pub(super) &'a [String]);

impl fmt::Display for Differences<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 5;
        let Self(differences) = self;
        for difference in differences.iter().take(SHOWN) {
            writeln!(f, "          {difference}")?;
        }
        if let Some(more @ 1..) = differences.len().checked_sub(SHOWN) {
            writeln!(f, "          and {more} more")?;
        }
        Ok(())
    }
}
