//! What is late, and what is out of order.

use postrider_actors::AuditPolicy;
use sqlx::PgConnection;

use super::{EXAMPLES, Group};
use crate::queue::rows::interval;

/// Of the deliveries whose time came long ago: those that nobody claimed. One of a key has waited for a claim only
/// since the one before it ended, and not while its key is held.
pub(super) async fn overdue(
    connection: &mut PgConnection,
    policy: &AuditPolicy,
    channels: &[String],
) -> Result<Vec<Group>, sqlx::Error> {
    let max_ages: Vec<_> = channels
        .iter()
        .map(|name| policy.channels.iter().find(|known| known.name.as_str() == name))
        .map(|known| known.map(|channel| interval(channel.max_age)))
        .collect();
    sqlx::query_as(
        "select late.channel, late.kind, count(*) as found,
                (array_agg(late.id order by late.due_at))[1:$5] as examples
           from (select c.name as channel, d.id, d.due_at,
                        case when greatest(d.due_at, o.released_at, o.held_until) >= now() - $3 then null
                             when d.claimed then 'lease_expired'
                             when c.max_age is null then 'channel_not_registered'
                             when d.status_since + c.max_age + $3 < now() then 'overdue_past_max_age'
                             else 'overdue' end as kind
                   from unnest($1::text[], $2::interval[]) as c (name, max_age)
                  cross join lateral (
                        select due.id, due.due_at, due.status_since, due.ordering_key,
                               due.claim_token is not null as claimed
                          from postrider.deliveries due
                         where due.channel = c.name and due.status = 'pending' and due.claimable
                           and due.ready_at < now() - $3 and due.due_at < now() - $3
                         order by due.ready_at
                         limit $4) d
                   left join postrider.delivery_orderings o on o.channel = c.name and o.ordering_key = d.ordering_key) late
          group by late.channel, late.kind",
    )
    .bind(channels)
    .bind(max_ages)
    .bind(interval(policy.older_than))
    .bind(i64::from(policy.rows.get()))
    .bind(EXAMPLES as i32)
    .fetch_all(connection)
    .await
}

/// Of the deliveries that can be claimed: those that are not the first unfinished of their key.
pub(super) async fn claimable(
    connection: &mut PgConnection,
    policy: &AuditPolicy,
    channels: &[String],
) -> Result<Vec<Group>, sqlx::Error> {
    sqlx::query_as(
        "select free.channel, free.kind, count(*) as found, (array_agg(free.id))[1:$3] as examples
           from (select c.name as channel, d.id,
                        case when d.ordering_key is null then null
                             when exists (select from postrider.deliveries before
                                           where before.channel = c.name and before.ordering_key = d.ordering_key
                                             and before.status in ('pending', 'failed') and before.ordinal < d.ordinal)
                             then 'out_of_order' end as kind
                   from unnest($1::text[]) as c (name)
                  cross join lateral (
                        select due.id, due.ordering_key, due.ordinal
                          from postrider.deliveries due
                         where due.channel = c.name and due.status = 'pending' and due.claimable
                         order by due.ready_at
                         limit $2) d) free
          group by free.channel, free.kind",
    )
    .bind(channels)
    .bind(i64::from(policy.rows.get()))
    .bind(EXAMPLES as i32)
    .fetch_all(connection)
    .await
}

/// Of the deliveries that succeeded last: those of which an earlier one of their key is unfinished. A key that was
/// forgotten begins anew: what was created later is not earlier, whatever its ordinal.
pub(super) async fn succeeded(
    connection: &mut PgConnection,
    policy: &AuditPolicy,
    channels: &[String],
) -> Result<Vec<Group>, sqlx::Error> {
    sqlx::query_as(
        "select sent.channel, sent.kind, count(*) as found, (array_agg(sent.id))[1:$3] as examples
           from (select c.name as channel, d.id,
                        case when d.ordering_key is null then null
                             when exists (select from postrider.deliveries before
                                           where before.channel = c.name and before.ordering_key = d.ordering_key
                                             and before.status in ('pending', 'failed') and before.ordinal < d.ordinal
                                             and before.created_at <= d.created_at)
                             then 'out_of_order' end as kind
                   from unnest($1::text[]) as c (name)
                  cross join lateral (
                        select done.id, done.ordering_key, done.ordinal, done.created_at
                          from postrider.deliveries done
                         where done.channel = c.name and done.status = 'succeeded'
                         order by done.status_since desc
                         limit $2) d) sent
          group by sent.channel, sent.kind",
    )
    .bind(channels)
    .bind(i64::from(policy.rows.get()))
    .bind(EXAMPLES as i32)
    .fetch_all(connection)
    .await
}
