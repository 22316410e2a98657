//! Cleanup by age: one bounded pass.

use std::time::Duration;

use postrider_actors::{CleanedUp, Retention, Status};
use sqlx::PgConnection;

use super::abandon::abandon;
use super::channels::channels_with_rows;
use super::rows::interval;

/// The most rows that one pass deletes for a channel and status.
const BATCH: i64 = 1000;

pub(super) async fn clean_up(connection: &mut PgConnection, retention: &Retention) -> Result<CleanedUp, sqlx::Error> {
    let mut done = CleanedUp::default();
    for channel in channels_with_rows(&mut *connection).await? {
        for (status, age) in [
            (Status::Succeeded, retention.succeeded),
            (Status::Failed, retention.failed),
            (Status::Cancelled, retention.failed),
        ] {
            let deleted = delete(&mut *connection, &channel, status, age).await?;
            done.deleted += deleted;
            done.more |= deleted >= BATCH.unsigned_abs();
        }
        let abandoned = abandon(&mut *connection, &channel, retention.failed).await?;
        done.abandoned_keys += abandoned.keys;
        done.cancelled += abandoned.cancelled;
        if abandoned.more {
            // Enough for one transaction's worth of time.
            done.more = true;
            break;
        }
    }
    Ok(done)
}

/// Failures of ordered keys are not deleted here: see [`abandon`].
async fn delete(
    connection: &mut PgConnection,
    channel: &str,
    status: Status,
    age: Duration,
) -> Result<u64, sqlx::Error> {
    let deleted: Vec<(Option<String>, Option<i64>)> = sqlx::query_as(
        "delete from postrider.deliveries
          where id = any (array(
                select d.id
                  from postrider.deliveries d
                 where d.channel = $1 and d.status = $2 and d.status_since < statement_timestamp() - $3
                   and (d.status <> 'failed' or d.ordering_key is null)
                 order by d.status_since
                 limit $4
                   for update skip locked))
      returning ordering_key, ordinal",
    )
    .bind(channel)
    .bind(status.as_str())
    .bind(interval(age))
    .bind(BATCH)
    .fetch_all(&mut *connection)
    .await?;
    let ordered: Vec<(&str, i64)> =
        deleted.iter().filter_map(|(key, ordinal)| Some((key.as_deref()?, (*ordinal)?))).collect();
    forget_keys(connection, channel, &ordered).await?;
    Ok(deleted.len() as u64)
}

/// A key whose latest delivery has just been deleted by age, and of which nothing is unfinished or held, is forgotten
/// with it. Recorded to again, it begins anew.
async fn forget_keys(connection: &mut PgConnection, channel: &str, deleted: &[(&str, i64)]) -> Result<(), sqlx::Error> {
    if deleted.is_empty() {
        return Ok(());
    }
    let (keys, ordinals): (Vec<&str>, Vec<i64>) = deleted.iter().copied().unzip();
    sqlx::query(
        "delete from postrider.delivery_orderings
          where (channel, ordering_key) in (
                select o.channel, o.ordering_key
                  from unnest($2::text[], $3::bigint[]) as d (ordering_key, ordinal)
                  join postrider.delivery_orderings o
                    on o.channel = $1 and o.ordering_key = d.ordering_key and o.last_ordinal = d.ordinal
                 where o.unfinished = 0 and o.held_until < statement_timestamp()
                   for update of o skip locked)",
    )
    .bind(channel)
    .bind(keys)
    .bind(ordinals)
    .execute(connection)
    .await?;
    Ok(())
}
