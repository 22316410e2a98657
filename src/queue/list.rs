//! Listing deliveries: the latest change of status first.

use chrono::{DateTime, Utc};
use postrider_actors::{ChannelName, DeliveryId, Status};
use serde::Serialize;
use sqlx::PgConnection;
use uuid::Uuid;

use super::channels::channels_with_rows;

/// What to list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// Only of this status.
    pub status: Option<Status>,
    /// Only of this channel, whether it is registered here or not.
    pub channel: Option<ChannelName>,
    /// The most that is listed.
    pub limit: u32,
}

/// A delivery as operators see it: no payload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, sqlx::FromRow)]
pub struct DeliveryRow {
    /// Its id, a UUIDv7.
    pub id: Uuid,
    /// Its channel.
    pub channel: String,
    /// pending, succeeded, failed or cancelled.
    pub status: String,
    /// When it entered that status; while pending, when it was created or last retried.
    pub status_since: DateTime<Utc>,
    /// Who it is for.
    pub owner: String,
    /// What it is about.
    pub subject: Option<String>,
    /// Its ordering key.
    pub ordering_key: Option<String>,
    /// Its place in the key.
    pub ordinal: Option<i64>,
    /// Where it goes.
    pub destination: String,
    /// False while it waits behind the head of its key.
    pub claimable: bool,
    /// The earliest start of the next attempt; `None` unless pending, claimable and not being attempted.
    pub due_at: Option<DateTime<Utc>>,
    /// The end of the present attempt's lease.
    pub leased_until: Option<DateTime<Utc>>,
    /// Attempts so far.
    pub attempts: i32,
    /// A status code or a kind of error.
    pub last_error: Option<String>,
    /// When it was recorded.
    pub created_at: DateTime<Utc>,
}

/// The columns of a [`DeliveryRow`], of a table called `d`.
macro_rules! columns {
    () => {
        "d.id, d.channel, d.status, d.status_since, d.owner, d.subject, d.ordering_key, d.ordinal, d.destination,
         d.claimable, d.attempt as attempts, d.last_error, d.created_at,
         case when d.status = 'pending' and d.claimable and d.claim_token is null then d.due_at end as due_at,
         case when d.claim_token is not null then d.due_at end as leased_until"
    };
}

/// Lists by `listing`. Each channel and status is read in the order of the index and no further than the limit.
///
/// # Errors
/// The database.
pub async fn list(connection: &mut PgConnection, listing: &Listing) -> Result<Vec<DeliveryRow>, sqlx::Error> {
    let channels = match &listing.channel {
        Some(channel) => vec![channel.to_string()],
        None => channels_with_rows(&mut *connection).await?,
    };
    let statuses: Vec<&str> = match listing.status {
        Some(status) => vec![status.as_str()],
        None => Status::ALL.map(Status::as_str).to_vec(),
    };
    let mut rows: Vec<DeliveryRow> = sqlx::query_as(concat!(
        "select d.* from unnest($1::text[]) as c (name)
          cross join unnest($2::text[]) as s (status)
          cross join lateral (select ",
        columns!(),
        "          from postrider.deliveries d
                  where d.channel = c.name and d.status = s.status
                  order by d.status_since desc, d.id desc
                  limit $3) d"
    ))
    .bind(channels)
    .bind(statuses)
    .bind(i64::from(listing.limit))
    .fetch_all(connection)
    .await?;
    rows.sort_unstable_by_key(|row| std::cmp::Reverse((row.status_since, row.id)));
    rows.truncate(usize::try_from(listing.limit).unwrap_or(usize::MAX));
    Ok(rows)
}

/// One delivery, or `None`.
///
/// # Errors
/// The database.
pub async fn get(connection: &mut PgConnection, id: DeliveryId) -> Result<Option<DeliveryRow>, sqlx::Error> {
    sqlx::query_as(concat!("select ", columns!(), " from postrider.deliveries d where d.id = $1"))
        .bind(id.as_uuid())
        .fetch_optional(connection)
        .await
}
