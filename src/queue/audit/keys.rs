//! What is wrong with ordering keys.

use postrider_actors::AuditPolicy;
use sqlx::PgConnection;

use super::{EXAMPLES, Group};
use crate::queue::rows::interval;

/// The first so many deliveries of each key are counted; a key with more is compared as far as that.
const COUNTED: i64 = 100;

/// Steps from key to key of those with unfinished deliveries, and looks at the first of each.
pub(super) async fn heads(
    connection: &mut PgConnection,
    policy: &AuditPolicy,
    channels: &[String],
) -> Result<Vec<Group>, sqlx::Error> {
    sqlx::query_as(
        "with recursive step (channel, ordering_key) as (
             select c.name, (select d.ordering_key from postrider.deliveries d
                              where d.channel = c.name and d.ordering_key is not null
                                and d.status in ('pending', 'failed')
                              order by d.ordering_key limit 1)
               from unnest($1::text[]) as c (name)
             union all
             select step.channel, (select d.ordering_key from postrider.deliveries d
                                    where d.channel = step.channel and d.ordering_key > step.ordering_key
                                      and d.ordering_key is not null and d.status in ('pending', 'failed')
                                    order by d.ordering_key limit 1)
               from step where step.ordering_key is not null),
         judged as (
             select k.channel, head.id,
                    case when not exists (select from postrider.delivery_orderings o
                                           where o.channel = k.channel and o.ordering_key = k.ordering_key)
                         then 'key_missing'
                         when head.claimable or head.status = 'failed' then null
                         when not exists (select from postrider.delivery_releases r
                                           where r.channel = k.channel and r.ordering_key = k.ordering_key)
                         then 'key_without_head' end as kind
               from (select step.channel, step.ordering_key from step
                      where step.ordering_key is not null limit $2) k
              cross join lateral (
                    select d.id, d.status, d.claimable
                      from postrider.deliveries d
                     where d.channel = k.channel and d.ordering_key = k.ordering_key
                       and d.status in ('pending', 'failed')
                     order by d.ordinal
                     limit 1) head)
         select judged.channel, judged.kind, count(*) as found, (array_agg(judged.id))[1:$3] as examples
           from judged
          group by judged.channel, judged.kind",
    )
    .bind(channels)
    .bind(i64::from(policy.rows.get()))
    .bind(EXAMPLES as i32)
    .fetch_all(connection)
    .await
}

/// Whether each key's counter and last ordinal agree with its unfinished deliveries.
pub(super) async fn counters(connection: &mut PgConnection, policy: &AuditPolicy) -> Result<Vec<Group>, sqlx::Error> {
    sqlx::query_as(
        "select judged.channel, judged.kind, count(*) as found,
                coalesce((array_agg(judged.id) filter (where judged.id is not null))[1:$3], '{}') as examples
           from (select o.channel, first.id,
                        case when first.ordinals < first.found then 'duplicate_ordinal'
                             when last.ordinal > o.last_ordinal then 'key_miscounted'
                             when least(o.unfinished, $2) = first.found then null
                             when least(o.unfinished, $2) <> least(first.found + (
                                      select count(*) from postrider.delivery_releases r
                                       where r.channel = o.channel and r.ordering_key = o.ordering_key), $2)
                             then 'key_miscounted' end as kind
                   from (select o.channel, o.ordering_key, o.last_ordinal, o.unfinished
                           from postrider.delivery_orderings o order by o.channel, o.ordering_key limit $1) o
                  cross join lateral (
                        select count(*) as found, count(distinct d.ordinal) as ordinals,
                               (array_agg(d.id order by d.ordinal))[1] as id
                          from (select d.id, d.ordinal
                                  from postrider.deliveries d
                                 where d.channel = o.channel and d.ordering_key = o.ordering_key
                                   and d.status in ('pending', 'failed')
                                 order by d.ordinal
                                 limit $2) d) first
                   left join lateral (
                        select d.ordinal
                          from postrider.deliveries d
                         where d.channel = o.channel and d.ordering_key = o.ordering_key
                           and d.status in ('pending', 'failed')
                         order by d.ordinal desc
                         limit 1) last on true) judged
          group by judged.channel, judged.kind",
    )
    .bind(i64::from(policy.rows.get()))
    .bind(COUNTED)
    .bind(EXAMPLES as i32)
    .fetch_all(connection)
    .await
}

/// Releases that were written down for later, and the delivery that each keeps waiting.
pub(super) async fn releases(connection: &mut PgConnection, policy: &AuditPolicy) -> Result<Vec<Group>, sqlx::Error> {
    sqlx::query_as(
        "select r.channel, r.kind, count(*) as found,
                coalesce((array_agg(r.waiting) filter (where r.waiting is not null))[1:$3], '{}') as examples
           from (select r.channel, head.id as waiting,
                        case when r.postponed_at < now() - $1 then 'release_postponed' end as kind
                   from (select r.id, r.channel, r.ordering_key, r.postponed_at
                           from postrider.delivery_releases r order by r.id limit $2) r
                   left join lateral (
                        select d.id
                          from postrider.deliveries d
                         where d.channel = r.channel and d.ordering_key = r.ordering_key
                           and d.status in ('pending', 'failed')
                         order by d.ordinal
                         limit 1) head on true) r
          group by r.channel, r.kind",
    )
    .bind(interval(policy.older_than))
    .bind(i64::from(policy.rows.get()))
    .bind(EXAMPLES as i32)
    .fetch_all(connection)
    .await
}
