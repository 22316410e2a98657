//! The channels that there are rows of.

use sqlx::PgConnection;

/// Every channel that has rows, registered here or not, by stepping from name to name through the index.
///
/// # Errors
/// The database.
pub async fn channels_with_rows(connection: &mut PgConnection) -> Result<Vec<String>, sqlx::Error> {
    sqlx::query_scalar(
        "with recursive step (channel) as (
             (select d.channel from postrider.deliveries d order by d.channel limit 1)
             union all
             select (select d.channel from postrider.deliveries d where d.channel > step.channel order by d.channel limit 1)
               from step where step.channel is not null)
         select step.channel from step where step.channel is not null",
    )
    .fetch_all(connection)
    .await
}
