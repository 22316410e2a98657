//! What is wrong with a way to the database.

use std::time::Duration;

/// What every refusal tells to do.
macro_rules! instead {
    () => {
        "set DATABASE_URL to the server's own address, or to a pool with pool_mode = session (see docs/poolers.md)"
    };
}

/// A pooler between this process and PostgreSQL that gives its sessions to others: statements prepared, settings made,
/// locks taken and channels listened to on one session would be answered, ignored or lost on another, without an error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PoolerError {
    /// A server connection for each transaction, or each statement, and not for each session.
    #[error(
        "a pooler in transaction or statement mode stands before PostgreSQL, through which no session lasts: {}",
        instead!()
    )]
    SharedSessions,
    /// It lets no connection in that sets something at its start, such as `options` in the database's URL.
    #[error(
        "a pooler refuses the start-up parameter {parameter:?}: take it out of the URL (PGOPTIONS gives `options` too) and set it with ALTER ROLE, or {}",
        instead!()
    )]
    Parameter {
        /// The parameter's name.
        parameter: String,
    },
    /// The session is the same and what was set is not.
    #[error("a pooler takes `set` and does not pass it on, so that no session is set up: {}", instead!())]
    Settings,
}

/// No session could be had that is known to last.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// A pooler gives sessions away.
    #[error(transparent)]
    Pooler(#[from] PoolerError),
    /// A single connection does not show whether its session is its own.
    #[error(
        "a second connection was not answered within {0:?} while the first one was open: raise max_connections of the server, or pool_size of a pooler in session mode"
    )]
    NoSecondConnection(Duration),
    /// The database cannot be reached, or stopped to answer.
    #[error("the database cannot be reached")]
    Unreachable(#[source] sqlx::Error),
}

impl From<sqlx::Error> for SessionError {
    fn from(error: sqlx::Error) -> Self {
        refusal(&error).map_or(Self::Unreachable(error), Self::Pooler)
    }
}

/// The refusals of PgBouncer, which have no code of their own but "protocol violation".
fn refusal(error: &sqlx::Error) -> Option<PoolerError> {
    let message = error.as_database_error()?.message();
    if let Some((_, parameter)) = message.split_once("unsupported startup parameter") {
        // "unsupported startup parameter: options", "unsupported startup parameter in options: geqo"
        let parameter = parameter.rsplit(": ").next().unwrap_or_default().trim();
        let name = parameter.chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.')).take(63).collect();
        return Some(PoolerError::Parameter { parameter: name });
    }
    message.contains("statement pooling mode").then_some(PoolerError::SharedSessions)
}
