//! What operators do to a delivery. They win: what they change clears the claim, so an attempt in flight cannot
//! overwrite it.

use chrono::{DateTime, Utc};
use postrider_actors::{DeliveryId, Status};
use serde_json::json;
use sqlx::{Connection, PgConnection};
use uuid::Uuid;

use super::insert::{NewEvent, insert_event};
use super::release::{EndedOrdered, release};

/// Who does it, for the event that records it: a login name or the like, at most 200 characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operator(String);

impl Operator {
    /// Names an operator; `None` where the name is empty, too long or holds control characters.
    pub fn new(name: impl Into<String>) -> Option<Self> {
        let name = name.into();
        let fits = !name.is_empty() && name.chars().count() <= 200 && !name.chars().any(char::is_control);
        fits.then_some(Self(name))
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.0
    }
}

/// An operator's wish that was not done; nothing changed.
#[derive(Debug, thiserror::Error)]
pub enum OperateError {
    /// No such delivery: never recorded, cleaned up by age, or abandoned with its key.
    #[error("there is no delivery {0}")]
    NotFound(DeliveryId),
    /// Its status does not allow it.
    #[error("delivery {id} is {status}{}, so it cannot be {wish}", if *.ordered { " and ordered" } else { "" })]
    NotAllowed {
        /// Which delivery.
        id: DeliveryId,
        /// Its status.
        status: Status,
        /// It has an ordering key.
        ordered: bool,
        /// What was asked for.
        wish: &'static str,
    },
    /// The database failed.
    #[error("the database failed")]
    Database(#[from] sqlx::Error),
}

#[derive(sqlx::FromRow)]
struct Found {
    status: String,
    channel: String,
    ordering_key: Option<String>,
    leased_until: Option<DateTime<Utc>>,
}

impl Found {
    fn status(&self) -> Result<Status, sqlx::Error> {
        self.status.parse().map_err(|error| sqlx::Error::Decode(Box::new(error)))
    }
}

async fn lock(connection: &mut PgConnection, id: DeliveryId) -> Result<Found, OperateError> {
    let found: Option<Found> = sqlx::query_as(
        "select d.status, d.channel, d.ordering_key,
                case when d.claim_token is not null and d.due_at > statement_timestamp() then d.due_at end as leased_until
           from postrider.deliveries d
          where d.id = $1
            for update",
    )
    .bind(id.as_uuid())
    .fetch_optional(connection)
    .await?;
    found.ok_or(OperateError::NotFound(id))
}

/// Retries a failed delivery, or a cancelled unordered one: due now, MAX_AGE and backoff start over. Records
/// `delivery_retried` with who did it.
///
/// # Errors
/// No such delivery, a status that does not allow it, or the database.
pub async fn retry(connection: &mut PgConnection, id: DeliveryId, by: &Operator) -> Result<(), OperateError> {
    let mut transaction = Connection::begin(connection).await?;
    let found = lock(&mut transaction, id).await?;
    let (status, ordered) = (found.status()?, found.ordering_key.is_some());
    let allowed = status == Status::Failed || (status == Status::Cancelled && !ordered);
    if !allowed {
        return Err(OperateError::NotAllowed { id, status, ordered, wish: "retried" });
    }
    sqlx::query(
        "update postrider.deliveries
            set status = 'pending', status_since = statement_timestamp(), due_at = statement_timestamp(),
                ready_at = statement_timestamp(), claimable = true, claim_token = null, attempts_at_retry = attempt
          where id = $1",
    )
    .bind(id.as_uuid())
    .execute(&mut *transaction)
    .await?;
    note(&mut transaction, "delivery_retried", id, by).await?;
    transaction.commit().await?;
    Ok(())
}

/// Cancels a pending or failed delivery; final for an ordered one. An attempt in flight may still reach the receiver,
/// but its outcome is discarded, and the next of its key waits for the end of its lease. Records `delivery_cancelled`
/// with who did it.
///
/// # Errors
/// No such delivery, a status that does not allow it, or the database.
pub async fn cancel(connection: &mut PgConnection, id: DeliveryId, by: &Operator) -> Result<(), OperateError> {
    let mut transaction = Connection::begin(connection).await?;
    let found = lock(&mut transaction, id).await?;
    let status = found.status()?;
    if !matches!(status, Status::Pending | Status::Failed) {
        let ordered = found.ordering_key.is_some();
        return Err(OperateError::NotAllowed { id, status, ordered, wish: "cancelled" });
    }
    sqlx::query(
        "update postrider.deliveries
            set status = 'cancelled', status_since = statement_timestamp(), claim_token = null
          where id = $1",
    )
    .bind(id.as_uuid())
    .execute(&mut *transaction)
    .await?;
    if let Some(ordering_key) = found.ordering_key {
        let ended = EndedOrdered { channel: found.channel, ordering_key, held_until: found.leased_until };
        release(&mut transaction, &[ended]).await?;
    }
    note(&mut transaction, "delivery_cancelled", id, by).await?;
    transaction.commit().await?;
    Ok(())
}

async fn note(connection: &mut PgConnection, kind: &str, id: DeliveryId, by: &Operator) -> Result<(), sqlx::Error> {
    let payload = json!({ "delivery": id.to_string(), "by": by.name() }).to_string();
    let event = NewEvent { id: Uuid::now_v7(), kind, payload: &payload };
    insert_event(connection, &event, &[]).await.map(drop)
}
