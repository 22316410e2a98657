//! Making a key's next delivery claimable when its head has ended.
//!
//! Done in the transaction that ends the head, under the key's lock. Where a host's open transaction holds that lock
//! (it is recording another delivery of the key), the release is written down in `delivery_releases` instead and done
//! as soon as the lock is free: an outcome never waits for a host.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use sqlx::{Connection, PgConnection};

/// An ordered delivery that succeeded or was cancelled in the present transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EndedOrdered {
    pub(super) channel: String,
    pub(super) ordering_key: String,
    /// The end of its lease, where it was cancelled in mid-attempt: nothing of the key is sent before.
    pub(super) held_until: Option<DateTime<Utc>>,
}

impl EndedOrdered {
    pub(super) fn now(channel: &str, ordering_key: &str) -> Self {
        Self { channel: channel.into(), ordering_key: ordering_key.into(), held_until: None }
    }
}

/// What came of a release.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Released {
    /// Deliveries that became claimable.
    pub(super) claimable: usize,
    /// Releases that had to be written down for later.
    pub(super) postponed: usize,
}

/// Within the caller's transaction, after its statement that ended the deliveries.
pub(super) async fn release(connection: &mut PgConnection, ended: &[EndedOrdered]) -> Result<Released, sqlx::Error> {
    if ended.is_empty() {
        return Ok(Released::default());
    }
    let channels: Vec<&str> = ended.iter().map(|one| one.channel.as_str()).collect();
    let keys: Vec<&str> = ended.iter().map(|one| one.ordering_key.as_str()).collect();
    let held: Vec<Option<DateTime<Utc>>> = ended.iter().map(|one| one.held_until).collect();
    let free: Vec<(String, String, bool)> = sqlx::query_as(
        "with ended as materialized (
             select e.channel, e.ordering_key, count(*) as ended, coalesce(max(e.held_until), '-infinity') as held_until
               from unnest($1::text[], $2::text[], $3::timestamptz[]) as e (channel, ordering_key, held_until)
              group by e.channel, e.ordering_key),
         locked as materialized (
             select o.channel, o.ordering_key, e.ended, e.held_until
               from ended e
               join postrider.delivery_orderings o on o.channel = e.channel and o.ordering_key = e.ordering_key
                for update of o skip locked),
         postponed as (
             insert into postrider.delivery_releases (channel, ordering_key, held_until)
             select e.channel, e.ordering_key, e.held_until
               from ended e cross join generate_series(1, e.ended)
              where not exists (select from locked l where l.channel = e.channel and l.ordering_key = e.ordering_key))
         update postrider.delivery_orderings o
            set unfinished = o.unfinished - l.ended,
                released_at = statement_timestamp(),
                held_until = greatest(o.held_until, l.held_until)
           from locked l
          where o.channel = l.channel and o.ordering_key = l.ordering_key
      returning o.channel, o.ordering_key, o.unfinished > 0",
    )
    .bind(&channels)
    .bind(&keys)
    .bind(&held)
    .fetch_all(&mut *connection)
    .await?;
    let distinct: std::collections::HashSet<_> = ended.iter().map(|one| (&one.channel, &one.ordering_key)).collect();
    let postponed = distinct.len() - free.len();
    let waiting: Vec<_> =
        free.into_iter().filter(|(_, _, more)| *more).map(|(channel, key, _)| (channel, key)).collect();
    let claimable = make_heads_claimable(connection, &waiting).await?;
    Ok(Released { claimable, postponed })
}

/// A statement of its own, so that it sees what was committed before the keys were locked.
async fn make_heads_claimable(connection: &mut PgConnection, keys: &[(String, String)]) -> Result<usize, sqlx::Error> {
    if keys.is_empty() {
        return Ok(0);
    }
    let (channels, keys): (Vec<&str>, Vec<&str>) = keys.iter().map(|(channel, key)| (&**channel, &**key)).unzip();
    let done = sqlx::query(
        "update postrider.deliveries d
            set claimable = true,
                due_at = greatest(d.due_at, o.held_until),
                ready_at = greatest(d.due_at, o.held_until, statement_timestamp())
           from unnest($1::text[], $2::text[]) as k (channel, ordering_key)
           join postrider.delivery_orderings o on o.channel = k.channel and o.ordering_key = k.ordering_key
          cross join lateral (
                select head.id
                  from postrider.deliveries head
                 where head.channel = k.channel and head.ordering_key = k.ordering_key
                   and head.status in ('pending', 'failed')
                 order by head.ordinal
                 limit 1) head
          where d.id = head.id and d.status = 'pending' and not d.claimable",
    )
    .bind(&channels)
    .bind(&keys)
    .execute(connection)
    .await?;
    Ok(usize::try_from(done.rows_affected()).unwrap_or(usize::MAX))
}

/// Knows whether this process postponed a release; looks now and then for those of others.
#[derive(Debug, Default)]
pub(super) struct Postponed(Mutex<Look>);

#[derive(Debug, Default)]
struct Look {
    postponed_here: bool,
    looked_at: Option<Instant>,
}

impl Postponed {
    /// How often a claim looks for releases that another process postponed.
    const LOOK_EVERY: Duration = Duration::from_secs(5);

    pub(super) fn note(&self, released: &Released) {
        if released.postponed > 0 {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).postponed_here = true;
        }
    }

    pub(super) fn worth_a_look(&self) -> bool {
        let look = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        look.postponed_here || look.looked_at.is_none_or(|at| at.elapsed() >= Self::LOOK_EVERY)
    }

    /// Does the postponed releases whose keys are free now, and touches no others.
    pub(super) async fn release(&self, connection: &mut PgConnection) -> Result<(), sqlx::Error> {
        if exists(&mut *connection).await? {
            let mut transaction = connection.begin().await?;
            let taken: Vec<(String, String, Option<DateTime<Utc>>)> = sqlx::query_as(
                "with free as materialized (
                     select r.id
                       from postrider.delivery_releases r
                       join postrider.delivery_orderings o on o.channel = r.channel and o.ordering_key = r.ordering_key
                      order by r.id
                      limit 500
                        for update of r, o skip locked)
                 delete from postrider.delivery_releases r
                  using free
                  where r.id = free.id
              returning r.channel, r.ordering_key, nullif(r.held_until, '-infinity')",
            )
            .fetch_all(&mut *transaction)
            .await?;
            let ended: Vec<_> = taken
                .into_iter()
                .map(|(channel, ordering_key, held_until)| EndedOrdered { channel, ordering_key, held_until })
                .collect();
            release(&mut transaction, &ended).await?;
            transaction.commit().await?;
        }
        let left = exists(connection).await?;
        let mut look = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        look.postponed_here = left;
        look.looked_at = Some(Instant::now());
        Ok(())
    }
}

async fn exists(connection: &mut PgConnection) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar("select exists (select from postrider.delivery_releases)").fetch_one(connection).await
}
