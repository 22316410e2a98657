//! What the sessions of the actors' pool are set to.

use std::time::Duration;

use sqlx::postgres::PgConnectOptions;

/// Options for a pool of a [`PgQueue`](super::PgQueue) whose calls are given up after `queue_timeout`.
///
/// The server ends by itself what nobody waits for any more: a statement; a transaction whose process was stopped in the
/// middle of it, whose locks would otherwise hold up hosts; a connection to a process that is gone. Isolation is READ
/// COMMITTED whatever the default of the role or database is. Plans are made for the values at hand, by index: a
/// queue's table grows from nothing to millions and back, and no plan made for one size may serve another.
pub fn session_options(options: PgConnectOptions, queue_timeout: Duration) -> PgConnectOptions {
    let timeout = queue_timeout.as_millis().to_string();
    options.application_name("postrider").options([
        ("statement_timeout", timeout.as_str()),
        ("idle_in_transaction_session_timeout", timeout.as_str()),
        ("tcp_user_timeout", timeout.as_str()),
        ("client_connection_check_interval", timeout.as_str()),
        ("default_transaction_isolation", "read committed"),
        ("plan_cache_mode", "force_custom_plan"),
        ("enable_seqscan", "off"),
    ])
}
