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

/// What happened, as a row.
pub(crate) struct NewEvent<'a> {
    pub(crate) id: Uuid,
    pub(crate) kind: &'a str,
    /// JSON.
    pub(crate) payload: &'a str,
}

/// Inserts an event and `deliveries` of it, in their order, which is their order within each key. The event goes in one
/// statement with the first of them.
pub(crate) async fn insert_event(
    connection: &mut PgConnection,
    event: &NewEvent<'_>,
    deliveries: &[(ChannelName, NewDelivery)],
) -> Result<Vec<DeliveryId>, sqlx::Error> {
    let places = draw_ordinals(&mut *connection, deliveries).await?;
    let first = deliveries.len().min(ROWS);
    let mut ids = insert_rows(&mut *connection, event.id, Some(event), &deliveries[..first], &places[..first]).await?;
    for (rows, places) in deliveries[first..].chunks(ROWS).zip(places[first..].chunks(ROWS)) {
        ids.extend(insert_rows(&mut *connection, event.id, None, rows, places).await?);
    }
    Ok(ids)
}

/// Inserts more `deliveries`, unordered ones, of an event that is there.
pub(crate) async fn insert_more(
    connection: &mut PgConnection,
    event: Uuid,
    deliveries: &[(ChannelName, NewDelivery)],
) -> Result<u64, sqlx::Error> {
    let mut inserted = 0;
    for rows in deliveries.chunks(ROWS) {
        let places = vec![Place::default(); rows.len()];
        inserted += insert_rows(&mut *connection, event, None, rows, &places).await?.len() as u64;
    }
    Ok(inserted)
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
    new: Option<&NewEvent<'_>>,
    rows: &[(ChannelName, NewDelivery)],
    places: &[Place],
) -> Result<Vec<DeliveryId>, sqlx::Error> {
    let column = |read: fn(&NewDelivery) -> &str| rows.iter().map(|(_, row)| read(row)).collect::<Vec<&str>>();
    let optional = |read: fn(&NewDelivery) -> Option<&str>| rows.iter().map(|(_, row)| read(row)).collect::<Vec<_>>();
    let ids: Vec<DeliveryId> = rows.iter().map(|_| DeliveryId::generate()).collect();
    sqlx::query(
        "with event as (
             insert into postrider.events (id, kind, payload)
             select $1, e.kind, e.payload::jsonb from unnest($13::text[], $14::text[]) as e (kind, payload))
         insert into postrider.deliveries
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
    .bind(new.map(|event| event.kind).as_slice())
    .bind(new.map(|event| event.payload).as_slice())
    .execute(connection)
    .await?;
    Ok(ids)
}
