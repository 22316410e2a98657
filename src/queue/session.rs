//! What the sessions of the actors' pool are set to.

use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{AssertSqlSafe, PgConnection};

use crate::pooler::{self, SessionError};

/// Shown as they were set by [`statements`], of which they stand for all.
const SHOWN: [(&str, &str); 2] = [("plan_cache_mode", "force_custom_plan"), ("enable_seqscan", "off")];

/// How the pool of a [`PgQueue`](super::PgQueue) connects: with no start-up parameter that poolers refuse, nor one that
/// they may be told to ignore. What its sessions are set to comes with [`pool_options`].
pub fn connect_options(options: PgConnectOptions) -> PgConnectOptions {
    pooler::startup(options)
}

/// Options for a pool of a [`PgQueue`](super::PgQueue) whose calls are given up after `queue_timeout`: every session
/// is set up when its connection is made.
///
/// The server ends by itself what nobody waits for any more: a statement; a transaction whose process was stopped in the
/// middle of it, whose locks would otherwise hold up hosts; a connection to a process that is gone. Isolation is READ
/// COMMITTED whatever the default of the role or database is. Plans are made for the values at hand, by index: a
/// queue's table grows from nothing to millions and back, and no plan made for one size may serve another. Without
/// JIT, which takes longer than any of these statements, and is chosen where a scan that is not wanted has no other way.
pub fn pool_options(queue_timeout: Duration) -> PgPoolOptions {
    let set = statements(queue_timeout);
    PgPoolOptions::new().acquire_timeout(queue_timeout).after_connect(move |connection, _| {
        let set = set.clone();
        Box::pin(async move { sqlx::raw_sql(AssertSqlSafe(set)).execute(connection).await.map(drop) })
    })
}

/// A connection that is set up like those of the pool, known to have a session that lasts.
///
/// # Errors
/// See [`pooler::connect_to_session`]; also settings that do not last.
pub async fn connect(options: &PgConnectOptions, queue_timeout: Duration) -> Result<PgConnection, SessionError> {
    pooler::connect_and_set(options, &statements(queue_timeout), &SHOWN).await
}

/// By statements and not in the start-up message, as poolers refuse or silently ignore those. One round trip.
fn statements(queue_timeout: Duration) -> String {
    let timeout = queue_timeout.as_millis();
    format!(
        "set statement_timeout = {timeout};
         set idle_in_transaction_session_timeout = {timeout};
         set tcp_user_timeout = {timeout};
         set client_connection_check_interval = {timeout};
         set default_transaction_isolation = 'read committed';
         set plan_cache_mode = force_custom_plan;
         set enable_seqscan = off;
         set jit = off"
    )
}
