//! Connecting, within a bounded time.

use std::time::Duration;

use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, Connection, PgConnection};
use tokio::time::{Instant, sleep_until, timeout_at};

use super::arguments::Global;
use super::database::Database;
use super::failure::{Exit, Failure, exit_of};
use crate::pooler::{PoolerError, SessionError, connect_to_session};
use crate::queue::SchemaError;

const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(200);

/// What is done where the database cannot be reached at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Patience {
    /// Nothing, unless it is a private PostgreSQL, which its owner may just be starting.
    Once,
    /// It is tried again, as it may just be starting too.
    UntilTimeout,
}

/// Connects to a session that lasts, however far this comes, within `--database-timeout`.
pub(super) async fn connect(database: &Database, global: &Global, patience: Patience) -> Result<PgConnection, Failure> {
    let deadline = Instant::now() + global.database_timeout;
    // Whoever waits for a command sees that it is slow; a statement's text is of no use to them.
    let options = database.options.clone().disable_statement_logging();
    let again = patience == Patience::UntilTimeout || database.is_private();
    attempt_until(&options, deadline, again).await.map_err(|error| {
        if let Some(SessionError::Pooler(error)) = &error {
            return pooler_failure(database, error);
        }
        let failure = Failure::new(Exit::Unreachable, format!("cannot connect to the {}", database.shown()));
        let failure = match &error {
            Some(SessionError::Unreachable(source)) => failure.because(source),
            Some(error) => failure.because(error),
            None => failure.because(&NoAnswer(global.database_timeout)),
        };
        failure.advise("check --database-url (DATABASE_URL), and that the server runs and lets this machine in")
    })
}

/// A way to the database that sessions do not survive. The error says what to set.
pub(super) fn pooler_failure(database: &Database, error: &PoolerError) -> Failure {
    Failure::new(Exit::Usage, format!("--database-url (DATABASE_URL): the {} cannot be used", database.shown()))
        .because(error)
}

/// No connection in time.
#[derive(Debug, thiserror::Error)]
#[error("no answer within {0:?}")]
pub(super) struct NoAnswer(pub(super) Duration);

/// For all that one command asks of the database.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// Does `work` over one connection to the database that is there, within a bounded time. `hint` is what to look at
/// where there is no answer.
pub(super) async fn ask<T>(
    global: &Global,
    hint: &str,
    work: impl AsyncFnOnce(&mut PgConnection) -> Result<T, Failure>,
) -> Result<T, Failure> {
    ask_for(ANSWER_TIMEOUT, global, hint, work).await
}

/// The same with a bound of its own.
pub(super) async fn ask_for<T>(
    patience: Duration,
    global: &Global,
    hint: &str,
    work: impl AsyncFnOnce(&mut PgConnection) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let database = Database::existing(global).await?;
    let done = match connect(&database, global, Patience::Once).await {
        Ok(mut connection) => {
            let work = async {
                let fits = crate::check_schema(&mut connection).await;
                fits.map_err(|error| schema_failure(&database, &error))?;
                work(&mut connection).await
            };
            let no_answer = || {
                Failure::new(Exit::Unreachable, format!("the {} does not answer", database.shown()))
                    .because(&NoAnswer(patience))
                    .advise(hint)
            };
            let done = tokio::time::timeout(patience, work).await.unwrap_or_else(|_| Err(no_answer()));
            // Nothing is left to be done on it.
            let _ = tokio::time::timeout(Duration::from_secs(1), connection.close()).await;
            done
        }
        Err(failure) => Err(failure),
    };
    database.close().await?;
    done
}

/// For `map_err`: `doing` is what failed, as in "**listing deliveries** failed".
pub(super) fn failed(doing: &'static str) -> impl Fn(sqlx::Error) -> Failure {
    move |error| Failure::new(exit_of(&error), format!("{doing} failed")).because(&error)
}

/// The last error, or `None` where there was no answer at all.
async fn attempt_until(
    options: &PgConnectOptions,
    deadline: Instant,
    again: bool,
) -> Result<PgConnection, Option<SessionError>> {
    let mut last = None;
    loop {
        match timeout_at(deadline, connect_to_session(options)).await {
            Err(_) => return Err(last),
            Ok(Ok(connection)) => return Ok(connection),
            Ok(Err(error)) => {
                let next = Instant::now() + BETWEEN_ATTEMPTS;
                if !again || exit_of_session(&error) != Exit::Unreachable || next > deadline {
                    return Err(Some(error));
                }
                last = Some(error);
                sleep_until(next).await;
            }
        }
    }
}

fn exit_of_session(error: &SessionError) -> Exit {
    match error {
        SessionError::Pooler(_) => Exit::Usage,
        SessionError::NoSecondConnection(_) => Exit::Unreachable,
        SessionError::Unreachable(error) => exit_of(error),
    }
}

/// A database that does not fit this release, or could not be asked whether it does.
pub(super) fn schema_failure(database: &Database, error: &SchemaError) -> Failure {
    match error {
        SchemaError::Database(source) => {
            Failure::new(exit_of(source), format!("the {} did not tell its version", database.shown())).because(source)
        }
        SchemaError::ServerTooOld { .. } | SchemaError::Newer { .. } => {
            Failure::new(Exit::Usage, format!("the {} does not fit this release", database.shown())).because(error)
        }
        SchemaError::Older { .. } => {
            Failure::new(Exit::Usage, format!("the {} does not fit this release", database.shown()))
                .because(error)
                .advise("run `postrider migrate`, or `postrider serve --migrate`")
        }
    }
}
