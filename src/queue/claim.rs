//! Claiming: the longest-due deliveries of a channel, each under a token of its own.

use std::num::NonZeroUsize;
use std::time::Duration;

use chrono::{DateTime, Utc};
use postrider_actors::{ChannelName, ClaimToken, Delivery, DeliveryId, Lease};
use sqlx::PgConnection;
use uuid::Uuid;

use super::rows::{from_micros, interval, unsigned};

#[derive(sqlx::FromRow)]
struct ClaimedRow {
    id: Uuid,
    claim_token: Uuid,
    owner: String,
    subject: Option<String>,
    ordering_key: Option<String>,
    destination: String,
    payload: String,
    attempt: i32,
    attempts_at_retry: i32,
    ready_at: DateTime<Utc>,
    claimed_at: DateTime<Utc>,
    age_micros: i64,
}

/// What one claim came to.
pub(super) struct Claimed {
    /// The longest ready first.
    pub(super) leases: Vec<Lease>,
    /// When it was made; `None` where it came back with nothing.
    pub(super) at: Option<DateTime<Utc>>,
    /// Where the last of them stands in the due index, if there may be more behind it.
    pub(super) more_from: Option<DateTime<Utc>>,
}

/// One statement; walks only entries of the due index from `begin` on that it returns, whose lease lasts, that somebody
/// else is claiming just now, or that vacuum has not removed yet.
///
/// The rows are updated by where they were found: locked in this statement, they are not elsewhere. One that was written
/// to between the statement's snapshot and its lock is left to the next search. No indexed column changes, so that a
/// claim leaves no dead entry in any index.
pub(super) async fn claim(
    connection: &mut PgConnection,
    channel: &ChannelName,
    slots: NonZeroUsize,
    lease: Duration,
    begin: Option<DateTime<Utc>>,
) -> Result<Claimed, sqlx::Error> {
    let mut rows: Vec<ClaimedRow> = sqlx::query_as(
        "with due as materialized (
             select due.ctid
               from postrider.deliveries due
              where due.channel = $1 and due.status = 'pending' and due.claimable
                and due.ready_at >= coalesce($4, '-infinity'::timestamptz) and due.ready_at <= statement_timestamp()
                and due.due_at <= statement_timestamp()
              order by due.ready_at
              limit $2
                for update skip locked)
         update postrider.deliveries d
            set claim_token = gen_random_uuid(),
                -- Over a lease that ran out the next one is longer: what kills its workers backs off.
                due_at = statement_timestamp() + case when d.claim_token is null then $3
                    else greatest($3, least($3 * power(2, least(d.lapsed_leases + 1, 6)), interval '1 hour')) end,
                lapsed_leases = case when d.claim_token is null then 0 else least(d.lapsed_leases + 1, 6) end,
                attempt = d.attempt + 1
          where d.ctid = any (array(select due.ctid from due))
      returning d.id, d.claim_token, d.owner, d.subject, d.ordering_key, d.destination, d.payload::text as payload,
                d.attempt, d.attempts_at_retry, d.ready_at, statement_timestamp() as claimed_at,
                (extract(epoch from statement_timestamp() - d.status_since) * 1000000)::bigint as age_micros",
    )
    .bind(channel.as_str())
    .bind(i64::try_from(slots.get()).unwrap_or(i64::MAX))
    .bind(interval(lease))
    .bind(begin)
    .fetch_all(connection)
    .await?;
    rows.sort_by_key(|row| row.ready_at);
    let at = rows.first().map(|row| row.claimed_at);
    let more_from = rows.last().filter(|_| rows.len() >= slots.get()).map(|row| row.ready_at);
    Ok(Claimed { leases: rows.into_iter().map(|row| row.lease(channel)).collect(), at, more_from })
}

impl ClaimedRow {
    fn lease(self, channel: &ChannelName) -> Lease {
        let attempt = unsigned(self.attempt);
        Lease {
            token: ClaimToken::from_uuid(self.claim_token),
            attempt,
            attempt_since_retry: attempt.saturating_sub(unsigned(self.attempts_at_retry)),
            age: from_micros(self.age_micros),
            delivery: Delivery {
                id: DeliveryId::from_uuid(self.id),
                channel: channel.clone(),
                owner: self.owner,
                subject: self.subject,
                ordering_key: self.ordering_key,
                destination: self.destination,
                payload: self.payload,
            },
        }
    }
}
