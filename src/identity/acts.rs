//! What the acts of the domain have in common: how they fail, and what they leave for the caller's commit.

use super::sessions::RevokeError;
use crate::mail::AddressError;
use crate::recorder::{RecordError, Recorded};

/// What an act was asked to change and did not find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// No such account.
    Account,
    /// No such address, or it was removed.
    Address,
    /// No such recovery, or it was used, cancelled or has expired, or its address is no longer the primary one.
    Recovery,
    /// No such announcement.
    Announcement,
    /// No link has this token any more.
    Link,
}

impl std::fmt::Display for Missing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Account => "account",
            Self::Address => "address",
            Self::Recovery => "recovery",
            Self::Announcement => "announcement",
            Self::Link => "link",
        })
    }
}

/// An act that was not done. It changed nothing, and the caller's transaction is still good unless the database failed.
/// Never shows an address, a token or a text.
#[derive(Debug, thiserror::Error)]
pub enum ActError {
    /// There is nothing to do it to.
    #[error("there is no such {0}")]
    NoSuch(Missing),
    /// The account is disabled or closed.
    #[error("the account is not active")]
    NotActive,
    /// The text is no address.
    #[error("not an e-mail address: {0}")]
    Address(#[from] AddressError),
    /// The account has this address already.
    #[error("the account has this address already")]
    AlreadyThere,
    /// Another account has this address, verified.
    #[error("another account has this address")]
    AddressTaken,
    /// The address is verified already.
    #[error("the address is verified already")]
    AlreadyVerified,
    /// The address is not verified.
    #[error("the address is not verified")]
    NotVerified,
    /// The primary address is replaced, or another made primary first.
    #[error("the primary address cannot be removed: make another primary, or replace it")]
    IsPrimary,
    /// The account has no verified primary address.
    #[error("the account has no primary address")]
    NoPrimary,
    /// A notice that only the act itself writes.
    #[error("notices of a removed or replaced address are written by the removal or replacement")]
    OfAnAct,
    /// Sent already: what it says never changes, and it goes out once.
    #[error("the announcement is sent already")]
    AlreadySent,
    /// An announcement without subject or text, or with one that is too long or no plain text.
    #[error("an announcement needs a subject of up to 200 characters in one line, and a plain text of up to 64 KiB")]
    Unfit,
    /// An event could not be recorded.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The database failed.
    #[error("the database failed")]
    Database(#[from] sqlx::Error),
}

impl From<RevokeError> for ActError {
    fn from(error: RevokeError) -> Self {
        match error {
            RevokeError::Database(error) => Self::Database(error),
            RevokeError::Record(error) => Self::Record(error),
        }
    }
}

/// What was done; it is so once the caller's transaction commits.
#[derive(Debug)]
#[must_use = "call committed() after the commit, so that its messages are sent at once"]
pub struct Acted<T> {
    /// What came of it.
    pub value: T,
    recorded: Vec<Recorded>,
}

impl<T> Acted<T> {
    pub(super) fn new(value: T, recorded: Vec<Recorded>) -> Self {
        Self { value, recorded }
    }

    pub(super) fn into_parts(self) -> (T, Vec<Recorded>) {
        (self.value, self.recorded)
    }

    /// How many messages it causes, in all channels.
    pub fn deliveries(&self) -> u64 {
        self.recorded.iter().map(|recorded| recorded.deliveries.len() as u64 + recorded.paged).sum()
    }

    /// Says that the transaction is committed. Left out, polling finds the messages within a second.
    pub fn committed(self) -> T {
        self.recorded.into_iter().for_each(Recorded::committed);
        self.value
    }
}
