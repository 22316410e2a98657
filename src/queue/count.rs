//! Counting what waits, through an index.

use postrider_actors::{ChannelName, PendingCount};
use sqlx::{Connection, PgConnection};

use super::rows::{channel_name, from_micros};

pub(super) async fn count_pending(
    connection: &mut PgConnection,
    channels: &[ChannelName],
) -> Result<Vec<PendingCount>, sqlx::Error> {
    let names: Vec<&str> = channels.iter().map(ChannelName::as_str).collect();
    let mut transaction = connection.begin().await?;
    // Where most of the table waits, the planner would rather read all of it, payloads and all.
    sqlx::query("set local enable_seqscan = off").execute(&mut *transaction).await?;
    let rows: Vec<(String, i64, i64)> = sqlx::query_as(
        "select c.name, waiting.pending,
                coalesce((extract(epoch from statement_timestamp() - waiting.oldest) * 1000000)::bigint, 0)
           from unnest($1::text[]) as c (name)
          cross join lateral (
                select count(*) as pending, min(d.status_since) as oldest
                  from postrider.deliveries d
                 where d.channel = c.name and d.status = 'pending') waiting",
    )
    .bind(names)
    .fetch_all(&mut *transaction)
    .await?;
    transaction.commit().await?;
    rows.into_iter()
        .map(|(channel, pending, oldest_micros)| {
            Ok(PendingCount {
                channel: channel_name(&channel)?,
                pending: u64::try_from(pending).unwrap_or(0),
                oldest_age: from_micros(oldest_micros),
            })
        })
        .collect()
}
