//! Recording outcomes: each only where its token still holds the row.

use postrider_actors::{ChannelPolicy, DeliveryId, Ended, QueueError, Recorded, Settled, Status, Verdict};
use sqlx::{Connection, PgConnection};
use uuid::Uuid;

use super::effect::{Effect, EffectFailed};
use super::release::{EndedOrdered, release};
use super::rows::interval;
use super::{PgQueue, queue_error, victim};

/// Those without an effect in one statement, those with one in a transaction each.
pub(super) async fn record(
    queue: &PgQueue,
    channel: &ChannelPolicy,
    ended: &[Ended<Effect>],
) -> Result<Recorded, QueueError> {
    let mut recorded = Recorded { settled: vec![Settled::Unrecorded; ended.len()], released: 0 };
    let mut plain: Vec<usize> = (0..ended.len()).filter(|index| ended[*index].effect.is_none()).collect();
    // Rows are locked in the order of their ids, whatever order the outcomes came in.
    plain.sort_unstable_by_key(|index| ended[*index].delivery);
    record_group(queue, channel, ended, &plain, &mut recorded).await?;
    for (index, one) in ended.iter().enumerate() {
        if let Some(effect) = &one.effect {
            match victim::again(|| record_with_effect(queue, channel, one, effect)).await {
                Ok((settled, released)) => {
                    recorded.settled[index] = settled;
                    recorded.released += released;
                }
                // What is recorded already must not be reported as failed; the rest stays unrecorded.
                Err(_) if recorded.settled.iter().any(|settled| *settled != Settled::Unrecorded) => break,
                Err(error) => return Err(error),
            }
        }
    }
    crate::metrics::count_attempts(&channel.name, ended, &recorded.settled);
    Ok(recorded)
}

/// Where the server refuses a group, each is recorded by itself, so that one cannot hold up the others.
async fn record_group(
    queue: &PgQueue,
    channel: &ChannelPolicy,
    ended: &[Ended<Effect>],
    group: &[usize],
    recorded: &mut Recorded,
) -> Result<(), QueueError> {
    if group.is_empty() {
        return Ok(());
    }
    match record_plain(queue, channel, ended, group, recorded).await {
        Err(QueueError::Refused { .. }) if group.len() > 1 => {
            for index in group {
                record_plain(queue, channel, ended, &[*index], recorded).await?;
            }
            Ok(())
        }
        done => done,
    }
}

async fn record_plain(
    queue: &PgQueue,
    channel: &ChannelPolicy,
    ended: &[Ended<Effect>],
    group: &[usize],
    recorded: &mut Recorded,
) -> Result<(), QueueError> {
    let outcomes: Vec<&Ended<Effect>> = group.iter().map(|index| &ended[*index]).collect();
    let (rows, released) = victim::again(|| write_plain(queue, channel, &outcomes)).await?;
    for index in group {
        let row = rows.iter().find(|row| row.token == ended[*index].token.as_uuid());
        recorded.settled[*index] = match row {
            Some(row) => Settled::Recorded(row.status()?),
            None => Settled::LeaseLost,
        };
    }
    recorded.released += released;
    Ok(())
}

/// The outcomes' rows where their tokens held them, and how many deliveries became claimable.
async fn write_plain(
    queue: &PgQueue,
    channel: &ChannelPolicy,
    outcomes: &[&Ended<Effect>],
) -> Result<(Vec<RecordedRow>, usize), QueueError> {
    let mut held = queue.connection("recording outcomes").await?;
    let connection = held.get()?;
    let answer = async {
        if outcomes.iter().all(|one| !one.ordered) {
            return Ok((transition(&mut *connection, channel, outcomes).await?, 0));
        }
        let mut transaction = connection.begin().await?;
        let rows = transition(&mut transaction, channel, outcomes).await?;
        let released = release(&mut transaction, &ended_ordered(channel, &rows)).await?;
        transaction.commit().await?;
        queue.releases.note(&released);
        Ok((rows, released.claimable))
    };
    let answer = answer.await;
    held.end(answer)
}

/// The fence first, then the effect, then the commit. Whatever the server refuses from the effect on is the effect's
/// failure, and so is a wait that would take up the time kept for recording others.
async fn record_with_effect(
    queue: &PgQueue,
    channel: &ChannelPolicy,
    one: &Ended<Effect>,
    effect: &Effect,
) -> Result<(Settled, usize), QueueError> {
    let mut held = queue.connection("recording an outcome with its effect").await?;
    let connection = held.get()?;
    let answer = async {
        let mut transaction = connection.begin().await?;
        let rows = transition(&mut transaction, channel, &[one]).await?;
        let Some(row) = rows.first() else {
            transaction.rollback().await?;
            return Ok((Ok(Settled::LeaseLost), 0));
        };
        let applied = async {
            sqlx::raw_sql("set local statement_timeout = '2s'; set local lock_timeout = '1s'")
                .execute(&mut *transaction)
                .await?;
            effect.apply(&mut transaction).await?;
            Ok::<_, EffectFailed>(release(&mut transaction, &ended_ordered(channel, &rows)).await?)
        };
        let committed = match applied.await {
            Ok(released) => match transaction.commit().await {
                Ok(()) => Ok(released),
                Err(error @ sqlx::Error::Database(_)) => Err(EffectFailed::from(error)),
                Err(error) => return Err(error),
            },
            Err(failed) => {
                transaction.rollback().await?;
                Err(failed)
            }
        };
        match committed {
            Ok(released) => {
                queue.releases.note(&released);
                Ok((row.status().map(Settled::Recorded), released.claimable))
            }
            Err(failed) => {
                tracing::debug!(error = ?failed, delivery = %one.delivery, "effect failed");
                Ok((Ok(Settled::EffectFailed), 0))
            }
        }
    };
    let answer = answer.await;
    let (settled, released) = held.end(answer)?;
    Ok((settled?, released))
}

#[derive(sqlx::FromRow)]
struct RecordedRow {
    token: Uuid,
    status: String,
    ordering_key: Option<String>,
}

impl RecordedRow {
    fn status(&self) -> Result<Status, QueueError> {
        self.status.parse().map_err(|error| queue_error("recording outcomes", sqlx::Error::Decode(Box::new(error))))
    }
}

fn ended_ordered(channel: &ChannelPolicy, rows: &[RecordedRow]) -> Vec<EndedOrdered> {
    let succeeded = rows.iter().filter(|row| row.status == Status::Succeeded.as_str());
    succeeded
        .filter_map(|row| row.ordering_key.as_deref())
        .map(|key| EndedOrdered::now(channel.name.as_str(), key))
        .collect()
}

/// The one statement that writes outcomes. A retry that would be due later than MAX_AGE allows is a failure; a deferral
/// is due at MAX_AGE at the latest.
async fn transition(
    connection: &mut PgConnection,
    channel: &ChannelPolicy,
    outcomes: &[&Ended<Effect>],
) -> Result<Vec<RecordedRow>, sqlx::Error> {
    let ids: Vec<Uuid> = outcomes.iter().map(|one| DeliveryId::as_uuid(one.delivery)).collect();
    let tokens: Vec<Uuid> = outcomes.iter().map(|one| one.token.as_uuid()).collect();
    let written: Vec<Written> = outcomes.iter().map(|one| Written::of(one.verdict)).collect();
    let statuses: Vec<&str> = written.iter().map(|one| one.status.as_str()).collect();
    let retries: Vec<bool> = written.iter().map(|one| one.retries).collect();
    let waits: Vec<_> = written.iter().map(|one| interval(one.wait)).collect();
    let given_back: Vec<i32> = written.iter().map(|one| one.given_back).collect();
    let errors: Vec<Option<String>> = written.into_iter().map(|one| one.error).collect();
    sqlx::query_as(
        "update postrider.deliveries d
            set status = case when o.retries and statement_timestamp() + o.wait > d.status_since + $8
                              then 'failed' else o.status end,
                status_since = case when o.status <> 'pending'
                                      or (o.retries and statement_timestamp() + o.wait > d.status_since + $8)
                                    then statement_timestamp() else d.status_since end,
                due_at = case when o.status = 'pending'
                              then least(statement_timestamp() + o.wait, d.status_since + $8) else d.due_at end,
                ready_at = case when o.status = 'pending'
                                then least(statement_timestamp() + o.wait, d.status_since + $8) else d.ready_at end,
                attempt = d.attempt - o.given_back,
                claim_token = null,
                last_error = o.error
           from unnest($1::uuid[], $2::uuid[], $3::text[], $4::boolean[], $5::interval[], $6::integer[], $7::text[])
                as o (id, token, status, retries, wait, given_back, error)
          where d.id = o.id
            and d.claim_token = o.token -- the fence
      returning o.token, d.status, d.ordering_key",
    )
    .bind(ids)
    .bind(tokens)
    .bind(statuses)
    .bind(retries)
    .bind(waits)
    .bind(given_back)
    .bind(errors)
    .bind(interval(channel.max_age))
    .fetch_all(connection)
    .await
}

/// A verdict in columns.
struct Written {
    status: Status,
    retries: bool,
    wait: std::time::Duration,
    given_back: i32,
    error: Option<String>,
}

impl Written {
    fn of(verdict: Verdict) -> Self {
        let none = std::time::Duration::ZERO;
        let (status, retries, wait, given_back, reason) = match verdict {
            Verdict::Succeeded => (Status::Succeeded, false, none, 0, None),
            Verdict::Failed { reason } => (Status::Failed, false, none, 0, Some(reason)),
            Verdict::Retry { reason, wait } => (Status::Pending, true, wait, 0, Some(reason)),
            Verdict::Defer { reason, wait } => (Status::Pending, false, wait, 1, Some(reason)),
        };
        Self { status, retries, wait, given_back, error: reason.map(|reason| reason.to_string()) }
    }
}
