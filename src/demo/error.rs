//! Why a demo could not be shown to its end.

use std::io;

use super::mail::MailSetupError;
use crate::identity::{ActError, RegistrationError, RevokeError};
use crate::outbound::HttpsSetupError;
use crate::pooler::SessionError;
use crate::queue::{MigrateError, OperateError};
use crate::signing::{CryptographyFailed, SigningKeysError};
use crate::subsystem::SetupError;

/// The demo could not be shown; what it started has ended.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    /// The database cannot be reached.
    #[error("the database cannot be reached")]
    Unreachable(#[source] sqlx::Error),
    /// It is reached through a pooler whose sessions do not last, or takes one connection only.
    #[error(transparent)]
    Session(SessionError),
    /// The schema could not be brought up to date.
    #[error(transparent)]
    Migrate(#[from] MigrateError),
    /// The database failed.
    #[error("the database failed")]
    Database(#[from] sqlx::Error),
    /// Somebody else's deliveries would be sent, signed with throw-away keys.
    #[error(
        "the database holds {0} pending deliveries that are not the demo's, and the demo would send them: give it a database of its own"
    )]
    NotItsOwn(
        /// How many.
        usize,
    ),
    /// The demo's announcements would be written to somebody else's inboxes.
    #[error(
        "the database holds {0} active accounts that are not the demo's, and the demo would write to them: give it a database of its own"
    )]
    NotItsOwnAccounts(
        /// How many.
        usize,
    ),
    /// Two demos would send each other's deliveries.
    #[error("another demo runs on this database")]
    AnotherRuns,
    /// A delivery that an earlier demo left could not be cancelled.
    #[error("what an earlier demo left could not be cancelled")]
    Leftover(#[from] OperateError),
    /// No throw-away certificates.
    #[error("the receivers' certificates could not be made")]
    Certificates(#[from] rcgen::Error),
    /// No temporary folder for the root certificate.
    #[error("the folder of the receivers' root certificate could not be made")]
    TemporaryFolder(#[source] io::Error),
    /// TLS of the receivers.
    #[error("the receivers' TLS could not be set up")]
    Tls(#[from] rustls::Error),
    /// No address for a receiver.
    #[error("a receiver could not listen on {host}")]
    Listen {
        /// Where.
        host: &'static str,
        /// What went wrong.
        source: io::Error,
    },
    /// No keys for logout tokens.
    #[error(transparent)]
    Keys(#[from] CryptographyFailed),
    /// No key set.
    #[error(transparent)]
    KeySet(#[from] SigningKeysError),
    /// The outbound client.
    #[error(transparent)]
    Https(#[from] HttpsSetupError),
    /// The subsystem did not start.
    #[error(transparent)]
    Subsystem(#[from] SetupError),
    /// A client could not be registered.
    #[error(transparent)]
    Registration(#[from] RegistrationError),
    /// Sessions could not be ended.
    #[error(transparent)]
    Revoke(#[from] RevokeError),
    /// The mail channels could not be made.
    #[error(transparent)]
    Mail(#[from] MailSetupError),
    /// Something could not be done in the domain.
    #[error(transparent)]
    Act(#[from] ActError),
    /// What the demo says cannot be written any more.
    #[error("the demo's output cannot be written")]
    Output(#[source] io::Error),
}

impl From<SessionError> for DemoError {
    fn from(error: SessionError) -> Self {
        match error {
            SessionError::Unreachable(source) => Self::Unreachable(source),
            error => Self::Session(error),
        }
    }
}

impl From<postrider_actors::ConfigError> for DemoError {
    fn from(error: postrider_actors::ConfigError) -> Self {
        Self::Subsystem(SetupError::Config(error))
    }
}
