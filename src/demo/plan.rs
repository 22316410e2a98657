//! Whose sessions there are, which clients have tokens from each, and how each ends.

use super::cast::{Role, Visits};

const SESSIONS_OF_AN_ACCOUNT: usize = 3;

/// What happens to an account's sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// Each signs out, in a transaction of its own.
    SignOut,
    /// An administrator ends them all.
    ByAdministrator,
    /// The account is deleted.
    AccountDeleted,
    /// The person ends all but the first.
    Elsewhere,
    /// Each signs out, but the transactions roll back.
    SignOutRolledBack,
    /// The account is deleted, but the transaction rolls back.
    DeletionRolledBack,
}

const ENDINGS: [Ending; 12] = [
    Ending::SignOut,
    Ending::ByAdministrator,
    Ending::AccountDeleted,
    Ending::SignOutRolledBack,
    Ending::SignOut,
    Ending::ByAdministrator,
    Ending::Elsewhere,
    Ending::AccountDeleted,
    Ending::DeletionRolledBack,
    Ending::SignOut,
    Ending::ByAdministrator,
    Ending::AccountDeleted,
];

/// What becomes of one session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// It ends and the transaction commits: its clients are told.
    Ended,
    /// It would have ended, but the transaction rolls back.
    RolledBack,
    /// It goes on.
    Kept,
}

impl Ending {
    const fn fate(self, session: usize) -> Fate {
        match self {
            Self::SignOut | Self::ByAdministrator | Self::AccountDeleted => Fate::Ended,
            Self::Elsewhere if session == 0 => Fate::Kept,
            Self::Elsewhere => Fate::Ended,
            Self::SignOutRolledBack | Self::DeletionRolledBack => Fate::RolledBack,
        }
    }
}

/// An account to make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PlannedAccount {
    pub(super) ending: Ending,
    pub(super) sessions: Vec<PlannedSession>,
}

/// A session to make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PlannedSession {
    pub(super) fate: Fate,
    /// Positions in the cast.
    pub(super) roles: Vec<usize>,
}

/// The account whose one session ends before all others, while nothing else is under way.
pub(super) fn opening(cast: &[Role]) -> PlannedAccount {
    let roles = positions(cast, |role| role.visits == Visits::Opening);
    PlannedAccount { ending: Ending::SignOut, sessions: vec![PlannedSession { fate: Fate::Ended, roles }] }
}

/// All others. Sessions that do not end have tokens for every client, each of which would notice.
pub(super) fn accounts(cast: &[Role]) -> Vec<PlannedAccount> {
    let mut ended = 0;
    let mut session = |fate| {
        let roles = match fate {
            Fate::Ended => positions(cast, |role| role.visits.includes(ended)),
            Fate::RolledBack | Fate::Kept => positions(cast, |_| true),
        };
        ended += usize::from(fate == Fate::Ended);
        PlannedSession { fate, roles }
    };
    ENDINGS
        .into_iter()
        .map(|ending| {
            let sessions = (0..SESSIONS_OF_AN_ACCOUNT).map(|number| session(ending.fate(number))).collect();
            PlannedAccount { ending, sessions }
        })
        .collect()
}

fn positions(cast: &[Role], which: impl Fn(&Role) -> bool) -> Vec<usize> {
    cast.iter().enumerate().filter(|(_, role)| which(role)).map(|(position, _)| position).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::cast::cast;
    use super::super::pace::Pace;
    use super::*;

    #[test]
    fn every_receiver_has_deliveries_to_make_and_sessions_that_it_must_not_hear_of() {
        let cast = cast(&Pace::of(Duration::from_secs(10)), false);
        let all: Vec<PlannedAccount> = accounts(&cast).into_iter().chain([opening(&cast)]).collect();
        let sessions = || all.iter().flat_map(|account| &account.sessions);
        for (position, role) in cast.iter().enumerate() {
            let count = |fate| sessions().filter(|s| s.fate == fate && s.roles.contains(&position)).count();
            assert!(count(Fate::Ended) >= 1 && count(Fate::RolledBack) == 6 && count(Fate::Kept) == 1, "{}", role.name);
        }
    }
}
