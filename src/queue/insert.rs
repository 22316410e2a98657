//! Inserting an event and its deliveries in the caller's transaction.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use postrider_actors::{ChannelName, DeliveryId};
use sqlx::PgConnection;
use uuid::Uuid;

use super::rows::interval;
use crate::delivery::NewDelivery;

/// Rows of one INSERT: large fan-outs go in several, so that no statement grows without bound.
const ROWS: usize = 1000;

pub(crate) async fn insert_event(
    connection: &mut PgConnection,
    id: Uuid,
    kind: &str,
    payload: &str,
) -> Result<(), sqlx::Error> {
    sqlx::query("insert into postrider.events (id, kind, payload) values ($1, $2, $3::jsonb)")
        .bind(id)
        .bind(kind)
        .bind(payload)
        .execute(connection)
        .await?;
    Ok(())
}

/// Inserts `deliveries` of one event, in their order, which is their order within each key.
pub(crate) async fn insert_deliveries(
    connection: &mut PgConnection,
    event: Uuid,
    deliveries: &[(ChannelName, NewDelivery)],
) -> Result<Vec<DeliveryId>, sqlx::Error> {
    let places = draw_ordinals(&mut *connection, deliveries).await?;
    let mut ids = Vec::with_capacity(deliveries.len());
    for (rows, places) in deliveries.chunks(ROWS).zip(places.chunks(ROWS)) {
        ids.extend(insert_rows(&mut *connection, event, rows, places).await?);
    }
    Ok(ids)
}

/// A delivery's place in its key.
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    ordinal: Option<i64>,
    waits: bool,
    held_until: Option<DateTime<Utc>>,
}

#[derive(sqlx::FromRow)]
struct Drawn {
    channel: String,
    ordering_key: String,
    last_ordinal: i64,
    unfinished: i64,
    held_until: Option<DateTime<Utc>>,
}

/// Draws the next ordinals of each key. The key's row stays locked until the caller's transaction ends, so ordinals are
/// drawn in commit order. Keys are locked in their own order: two calls that share keys cannot deadlock.
async fn draw_ordinals(
    connection: &mut PgConnection,
    deliveries: &[(ChannelName, NewDelivery)],
) -> Result<Vec<Place>, sqlx::Error> {
    let mut places = vec![Place::default(); deliveries.len()];
    let mut by_key: BTreeMap<(&str, &str), Vec<usize>> = BTreeMap::new();
    for (index, (channel, delivery)) in deliveries.iter().enumerate() {
        if let Some(key) = &delivery.ordering_key {
            by_key.entry((channel.as_str(), key.as_str())).or_default().push(index);
        }
    }
    if by_key.is_empty() {
        return Ok(places);
    }
    let channels: Vec<&str> = by_key.keys().map(|(channel, _)| *channel).collect();
    let keys: Vec<&str> = by_key.keys().map(|(_, key)| *key).collect();
    let counts: Vec<i64> = by_key.values().map(|indexes| indexes.len() as i64).collect();
    let drawn: Vec<Drawn> = sqlx::query_as(
        "insert into postrider.delivery_orderings as o (channel, ordering_key, last_ordinal, unfinished)
         select k.channel, k.ordering_key, k.added, k.added
           from unnest($1::text[], $2::text[], $3::bigint[]) as k (channel, ordering_key, added)
             on conflict (channel, ordering_key) do update
            set last_ordinal = o.last_ordinal + excluded.last_ordinal,
                unfinished = o.unfinished + excluded.unfinished
      returning o.channel, o.ordering_key, o.last_ordinal, o.unfinished,
                nullif(o.held_until, '-infinity') as held_until",
    )
    .bind(channels)
    .bind(keys)
    .bind(counts)
    .fetch_all(connection)
    .await?;
    for Drawn { channel, ordering_key, last_ordinal, unfinished, held_until } in drawn {
        let indexes = by_key.get(&(channel.as_str(), ordering_key.as_str())).map(Vec::as_slice).unwrap_or_default();
        let added = indexes.len() as i64;
        let something_before = unfinished > added;
        for (nth, index) in indexes.iter().enumerate() {
            places[*index] = Place {
                ordinal: Some(last_ordinal - added + 1 + nth as i64),
                waits: something_before || nth > 0,
                held_until,
            };
        }
    }
    Ok(places)
}

async fn insert_rows(
    connection: &mut PgConnection,
    event: Uuid,
    rows: &[(ChannelName, NewDelivery)],
    places: &[Place],
) -> Result<Vec<DeliveryId>, sqlx::Error> {
    let column = |read: fn(&NewDelivery) -> &str| rows.iter().map(|(_, row)| read(row)).collect::<Vec<&str>>();
    let optional = |read: fn(&NewDelivery) -> Option<&str>| rows.iter().map(|(_, row)| read(row)).collect::<Vec<_>>();
    let ids: Vec<DeliveryId> = rows.iter().map(|_| DeliveryId::generate()).collect();
    sqlx::query(
        "insert into postrider.deliveries
                (id, event_id, channel, owner, subject, ordering_key, destination, payload, ordinal, claimable, due_at,
                 ready_at)
         select n.id, $1, n.channel, n.owner, n.subject, n.ordering_key, n.destination, n.payload::jsonb, n.ordinal,
                not n.waits, greatest(statement_timestamp() + n.delay, n.held_until),
                greatest(statement_timestamp() + n.delay, n.held_until)
           from unnest($2::uuid[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[],
                       $9::bigint[], $10::boolean[], $11::interval[], $12::timestamptz[])
                as n (id, channel, owner, subject, ordering_key, destination, payload, ordinal, waits, delay, held_until)",
    )
    .bind(event)
    .bind(ids.iter().map(|id| id.as_uuid()).collect::<Vec<_>>())
    .bind(rows.iter().map(|(channel, _)| channel.as_str()).collect::<Vec<_>>())
    .bind(column(|row| &row.owner))
    .bind(optional(|row| row.subject.as_deref()))
    .bind(optional(|row| row.ordering_key.as_deref()))
    .bind(column(|row| &row.destination))
    .bind(column(|row| row.payload()))
    .bind(places.iter().map(|place| place.ordinal).collect::<Vec<_>>())
    .bind(places.iter().map(|place| place.waits).collect::<Vec<_>>())
    .bind(rows.iter().map(|(_, row)| interval(row.delay)).collect::<Vec<_>>())
    .bind(places.iter().map(|place| place.held_until).collect::<Vec<_>>())
    .execute(connection)
    .await?;
    Ok(ids)
}
