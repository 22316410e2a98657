//! Fan-outs that are made a page at a time, and what transports read.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use postrider::queue::{Effect, Reads};
use postrider::{Channel, Channels, Event, InvalidDelivery, NewDelivery, Occurred, Page, RecordError, Recorder};
use postrider_actors::laws::channel_named;
use postrider_actors::{ChannelName, Transport};
use serde::Serialize;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::harness::{Wishing, pool};
use crate::support;

#[derive(Serialize)]
struct Told {
    many: u64,
    ordered: bool,
}

impl Event for Told {
    const KIND: &'static str = "told";
}

/// One delivery for each of `many` owners, a thousand in a page.
struct Telling {
    pages: AtomicUsize,
    largest: AtomicUsize,
}

#[async_trait]
impl Channel for Telling {
    fn name(&self) -> ChannelName {
        channel_named("telling").name
    }

    fn max_age(&self) -> Duration {
        Duration::from_secs(3600)
    }

    async fn deliveries(&self, _: &mut PgConnection, _: &Occurred<'_>) -> Result<Vec<NewDelivery>, RecordError> {
        Ok(Vec::new())
    }

    async fn page(
        &self,
        _: &mut PgConnection,
        event: &Occurred<'_>,
        after: Option<Uuid>,
    ) -> Result<Option<Page>, RecordError> {
        let Some(told) = event.of::<Told>() else { return Ok(None) };
        let first = after.map_or(0, |after| after.as_u128() as u64 + 1);
        let owners = first..(first + 1000).min(told.many);
        if owners.is_empty() {
            return Ok(None);
        }
        let last = Uuid::from_u128(u128::from(owners.end - 1));
        let made = |owner: u64| {
            let delivery = NewDelivery::new(owner.to_string(), "all", &())?;
            if told.ordered { delivery.ordered_by("one") } else { Ok(delivery) }
        };
        let deliveries = owners.map(made).collect::<Result<Vec<_>, _>>()?;
        self.pages.fetch_add(1, Ordering::SeqCst);
        self.largest.fetch_max(deliveries.len(), Ordering::SeqCst);
        Ok(Some(Page { deliveries, last }))
    }

    fn transport(&self, reads: &Reads) -> Arc<dyn Transport<Effect>> {
        Wishing(self.name()).transport(reads)
    }
}

fn telling() -> (Arc<Telling>, Recorder) {
    let telling = Telling { pages: AtomicUsize::new(0), largest: AtomicUsize::new(0) };
    let telling = Arc::new(telling);
    let channels: Vec<Arc<dyn Channel>> = vec![Arc::new(Wishing(channel_named("laws").name)), telling.clone()];
    (telling, Recorder::new(Channels::new(channels).unwrap()))
}

#[tokio::test]
async fn created_with_the_event_a_page_at_a_time_or_not_at_all() {
    const MANY: u64 = 3500;
    let database = support::database().await;
    let (telling, recorder) = telling();
    let count = "select count(*), count(distinct owner) from postrider.deliveries where channel = 'telling'";
    for commits in [false, true] {
        let mut transaction = database.pool().begin().await.unwrap();
        let mut heard = Vec::new();
        let told = Told { many: MANY, ordered: false };
        let mut progress = |written| heard.push(written);
        let recorded = recorder.record_reporting(&mut transaction, &told, &mut progress).await.unwrap();
        assert_eq!((recorded.paged, recorded.deliveries.len()), (MANY, 0));
        assert_eq!(heard, [1000, 2000, 3000, 3500]);
        if commits {
            transaction.commit().await.unwrap();
            recorded.committed();
        } else {
            transaction.rollback().await.unwrap();
        }
        let found: (i64, i64) = sqlx::query_as(count).fetch_one(database.pool()).await.unwrap();
        let expected = if commits { MANY as i64 } else { 0 };
        assert_eq!(found, (expected, expected));
    }
    assert_eq!((telling.pages.load(Ordering::SeqCst), telling.largest.load(Ordering::SeqCst)), (8, 1000));
}

#[tokio::test]
async fn an_ordered_delivery_in_a_page_is_refused() {
    let database = support::database().await;
    let (_, recorder) = telling();
    let mut transaction = database.pool().begin().await.unwrap();
    let refused = recorder.record(&mut transaction, &Told { many: 2, ordered: true }).await.unwrap_err();
    assert!(matches!(refused, RecordError::InvalidDelivery(InvalidDelivery::OrderedInPage)), "{refused:?}");
}

/// However many read at once, six of the eight connections are left to others.
#[tokio::test]
async fn what_transports_read_takes_two_connections_at_most() {
    let database = support::database().await;
    let pool = pool(database.options());
    let reads = Reads::new(pool.clone());
    let first = reads.connection().await.unwrap();
    let second = reads.connection().await.unwrap();
    let waiting = tokio::spawn({
        let reads = reads.clone();
        async move { reads.connection().await.unwrap().end(Ok(())) }
    });
    let mut others = Vec::new();
    for _ in 0..6 {
        others.push(pool.acquire().await.unwrap());
    }
    assert!(!waiting.is_finished());
    first.end(Ok(())).unwrap();
    waiting.await.unwrap().unwrap();
    second.end(Err::<(), _>(sqlx::Error::RowNotFound)).unwrap_err();
}
