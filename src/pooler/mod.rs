//! Finding out, before anything is done, whether a connection has a session of its own.
//!
//! PostgreSQL gives each connection one backend for all its life, and so does a pooler in session mode. One in
//! transaction mode lends a backend for each transaction, and whatever belongs to a session goes wrong silently: named
//! prepared statements answer with another statement's rows. Asking a pooler what it is needs its administrator, so it
//! is found out by its doings, with simple queries alone, which are right through any pooler.
//!
//! Two connections: the first marks its backend. Idle, a pool of one backend, or one that lends the latest first, lends
//! the marked one to the second connection, which sees the mark. One that lends them in turn shows the first another
//! backend, whatever the rhythm of its other clients, as the two are asked in a rhythm that changes; and so does a pool
//! under load, all the more as the second connection sits on one in a transaction. No answer is judged by its time, so
//! load refuses nobody.

mod error;

use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgRow};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, PgConnection, Row};
use tokio::time::timeout;
use uuid::Uuid;

pub use self::error::{PoolerError, SessionError};

/// A new second connection in each: where several poolers share an address, one of them may be the first's.
const ROUNDS: usize = 4;
/// For one answer.
const PATIENCE: Duration = Duration::from_secs(5);

const LOOK: &str = "select pg_backend_pid()::text, coalesce(current_setting('postrider.session', true), '')";

/// Connects with `options` and makes sure that the session behind the connection is its own and lasts. Hosts that call
/// [`migrate`](crate::migrate()) give it such a connection. Takes a second connection for a moment.
///
/// # Errors
/// A pooler in transaction or statement mode, or a database that is not reached.
pub async fn connect_to_session(options: &PgConnectOptions) -> Result<PgConnection, SessionError> {
    connect_and_set(options, "", &[]).await
}

/// The same, and `set` (statements) is done on the session; `shown` are settings whose values by it must last.
pub(crate) async fn connect_and_set(
    options: &PgConnectOptions,
    set: &str,
    shown: &[(&str, &str)],
) -> Result<PgConnection, SessionError> {
    let options = startup(options.clone());
    let mut first = options.connect().await?;
    let mark = Uuid::new_v4().simple().to_string();
    let marking = format!("set postrider.session = '{mark}'; {set}; {LOOK}");
    let own = look(&mut first, marking).await?;
    for _ in 0..ROUNDS {
        same(&mut first, &own).await?;
        let mut second = second(&options).await?;
        // Now one and now two of the first's between two of the second's: no other's rhythm fits that.
        for looks in [1, 2, 1, 2] {
            differs(&ask_second(&mut second, LOOK.to_owned()).await?, &own)?;
            for _ in 0..looks {
                same(&mut first, &own).await?;
            }
        }
        // And while it sits on its backend.
        differs(&ask_second(&mut second, format!("begin read only; {LOOK}")).await?, &own)?;
        let asked = still_same(&mut first, &mut second, &own).await;
        // Only a read in it; closing it ends it.
        let _ = timeout(PATIENCE, second.close()).await;
        asked?;
    }
    for (name, value) in shown {
        let show = format!("select current_setting('{name}') = '{value}'; {LOOK}");
        if !holds(&mut first, show, &own).await? {
            return Err(PoolerError::Settings.into());
        }
    }
    Ok(first)
}

/// sqlx asks for `extra_float_digits`, which poolers refuse and PostgreSQL 12 and newer do not need: floats are exact.
pub(crate) fn startup(options: PgConnectOptions) -> PgConnectOptions {
    options.application_name("postrider").extra_float_digits(None)
}

/// What a connection sees of its session.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    backend: String,
    mark: String,
}

/// One message, one answer: a simple query, in which nothing is prepared. The last row is the look.
async fn look(connection: &mut PgConnection, query: String) -> Result<Seen, SessionError> {
    timeout(PATIENCE, answer(connection, query)).await.map_err(|_| no_answer())?
}

async fn answer(connection: &mut PgConnection, query: String) -> Result<Seen, SessionError> {
    seen(&sqlx::raw_sql(AssertSqlSafe(query)).fetch_all(connection).await?)
}

fn seen(rows: &[PgRow]) -> Result<Seen, SessionError> {
    let row = rows.last().ok_or(sqlx::Error::RowNotFound)?;
    Ok(Seen { backend: row.try_get(0)?, mark: row.try_get(1)? })
}

/// What the first of two queries answers in the session that `own` is of.
async fn holds(first: &mut PgConnection, queries: String, own: &Seen) -> Result<bool, SessionError> {
    let asked = sqlx::raw_sql(AssertSqlSafe(queries)).fetch_all(first);
    let rows = timeout(PATIENCE, asked).await.map_err(|_| no_answer())??;
    judge(seen(&rows)?, own)?;
    Ok(rows.first().ok_or(sqlx::Error::RowNotFound)?.try_get(0)?)
}

fn no_answer() -> SessionError {
    SessionError::Unreachable(std::io::Error::from(std::io::ErrorKind::TimedOut).into())
}

async fn same(first: &mut PgConnection, own: &Seen) -> Result<(), SessionError> {
    judge(look(first, LOOK.to_owned()).await?, own)
}

fn judge(seen: Seen, own: &Seen) -> Result<(), SessionError> {
    if seen == *own { Ok(()) } else { Err(PoolerError::SharedSessions.into()) }
}

/// The second connection must have another backend than the first.
fn differs(seen: &Seen, own: &Seen) -> Result<(), SessionError> {
    let shared = seen.backend == own.backend || seen.mark == own.mark;
    if shared { Err(PoolerError::SharedSessions.into()) } else { Ok(()) }
}

async fn second(options: &PgConnectOptions) -> Result<PgConnection, SessionError> {
    match timeout(PATIENCE, options.connect()).await {
        Ok(connected) => Ok(connected?),
        Err(_) => Err(SessionError::NoSecondConnection(PATIENCE)),
    }
}

async fn ask_second(second: &mut PgConnection, query: String) -> Result<Seen, SessionError> {
    match timeout(PATIENCE, answer(second, query)).await {
        Ok(seen) => seen,
        Err(_) => Err(SessionError::NoSecondConnection(PATIENCE)),
    }
}

/// Asks the first connection while the second sits on a backend. A pool with none left answers only once the second has
/// ended its transaction, and then with that one's backend.
async fn still_same(first: &mut PgConnection, second: &mut PgConnection, own: &Seen) -> Result<(), SessionError> {
    let mut asked = std::pin::pin!(answer(first, LOOK.to_owned()));
    let seen = match timeout(PATIENCE, &mut asked).await {
        Ok(seen) => seen?,
        Err(_) => {
            let _ = timeout(PATIENCE, sqlx::raw_sql("rollback").execute(&mut *second)).await;
            timeout(PATIENCE, asked).await.map_err(|_| no_answer())??
        }
    };
    judge(seen, own)
}
