//! Deleting what is still kept for an owner that goes.

use postrider_actors::ChannelName;
use sqlx::PgConnection;

/// Deletes every unordered delivery of a channel for `owner`, whatever its status, in the caller's transaction; returns
/// how many. One that is being attempted may still reach its receiver; its outcome is discarded as a lost lease. Ordered
/// deliveries stay, as others may wait behind them. Rows are locked in the order of their ids.
///
/// An index serves the channel `announcement`. For a channel of your own with many deliveries make one like it:
/// `create index on postrider.deliveries (owner) where channel = '…' and ordering_key is null`.
///
/// # Errors
/// The database.
pub async fn delete_of_owner(
    connection: &mut PgConnection,
    channel: &ChannelName,
    owner: &str,
) -> Result<u64, sqlx::Error> {
    let deleted = sqlx::query(
        "with of_owner as materialized (
             select d.id from postrider.deliveries d
              where d.channel = $1 and d.owner = $2 and d.ordering_key is null
              order by d.id
                for update)
         delete from postrider.deliveries d using of_owner o where d.id = o.id",
    )
    .bind(channel.as_str())
    .bind(owner)
    .execute(connection)
    .await?;
    Ok(deleted.rows_affected())
}
