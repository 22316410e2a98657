//! Abandoning ordered keys whose failure nobody retried or cancelled in time.

use std::time::Duration;

use postrider_actors::Reason;
use sqlx::{Connection, PgConnection};
use uuid::Uuid;

use super::rows::interval;

/// The most keys that one transaction abandons.
const KEYS: i64 = 1000;
/// The most deliveries that one transaction cancels, unless a single key has more.
const ROWS: i64 = 20_000;
/// For the key that has very many; within the deadline of a pass of cleanup.
const STATEMENT_TIMEOUT: &str = "set local statement_timeout = '50s'";

#[derive(Debug, Default)]
pub(super) struct Abandoned {
    pub(super) keys: u64,
    pub(super) cancelled: u64,
    pub(super) more: bool,
}

/// One transaction: for each key locks the failure, then the ordering row, cancels all that waits behind the failure and
/// deletes it. A failure that an operator is retrying or cancelling, and a key whose next delivery is still being
/// inserted, are skipped; an operator who comes later waits, and finds the failure gone.
pub(super) async fn abandon(
    connection: &mut PgConnection,
    channel: &str,
    age: Duration,
) -> Result<Abandoned, sqlx::Error> {
    let mut transaction = connection.begin().await?;
    let failures: Vec<(Uuid, String)> = sqlx::query_as(
        "select d.id, d.ordering_key
           from postrider.deliveries d
          where d.channel = $1 and d.status = 'failed' and d.status_since < statement_timestamp() - $2
            and d.ordering_key is not null
          order by d.status_since
          limit $3
            for update skip locked",
    )
    .bind(channel)
    .bind(interval(age))
    .bind(KEYS)
    .fetch_all(&mut *transaction)
    .await?;
    if failures.is_empty() {
        transaction.rollback().await?;
        return Ok(Abandoned::default());
    }
    sqlx::query(STATEMENT_TIMEOUT).execute(&mut *transaction).await?;
    let keys: Vec<&str> = failures.iter().map(|(_, key)| key.as_str()).collect();
    let free: Vec<(String, i64)> = sqlx::query_as(
        "select o.ordering_key, o.unfinished
           from postrider.delivery_orderings o
          where o.channel = $1 and o.ordering_key = any ($2)
            for update skip locked",
    )
    .bind(channel)
    .bind(&keys)
    .fetch_all(&mut *transaction)
    .await?;
    let locked = within(free, ROWS);
    let ids: Vec<Uuid> = failures.iter().filter(|(_, key)| locked.contains(key)).map(|(id, _)| *id).collect();
    // A statement of its own: it sees all that was inserted before the keys were locked.
    let cancelled = sqlx::query(
        "update postrider.deliveries d
            set status = 'cancelled', status_since = statement_timestamp(), last_error = $3
          where d.channel = $1 and d.ordering_key = any ($2) and d.status = 'pending'",
    )
    .bind(channel)
    .bind(&locked)
    .bind(Reason::Abandoned.to_string())
    .execute(&mut *transaction)
    .await?
    .rows_affected();
    sqlx::query("delete from postrider.deliveries where id = any ($1)").bind(&ids).execute(&mut *transaction).await?;
    sqlx::query(
        "update postrider.delivery_orderings o
            set unfinished = (select count(*) from postrider.delivery_releases r
                               where r.channel = o.channel and r.ordering_key = o.ordering_key)
          where o.channel = $1 and o.ordering_key = any ($2)",
    )
    .bind(channel)
    .bind(&locked)
    .execute(&mut *transaction)
    .await?;
    transaction.commit().await?;
    // Perhaps of this channel, perhaps of another: the next pass sees.
    let more = !locked.is_empty();
    Ok(Abandoned { keys: locked.len() as u64, cancelled, more })
}

/// As many of the keys as have `rows` unfinished deliveries together, and at least one.
fn within(keys: Vec<(String, i64)>, rows: i64) -> Vec<String> {
    let mut sum = 0;
    keys.into_iter()
        .take_while(|(_, unfinished)| {
            let first = sum == 0;
            sum += unfinished;
            first || sum <= rows
        })
        .map(|(key, _)| key)
        .collect()
}
