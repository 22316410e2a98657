//! Recording: an event and every delivery it causes, in the caller's transaction.

use std::collections::BTreeSet;

use postrider_actors::{ChannelName, DeliveryId};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::channel::Channels;
use crate::delivery::{InvalidDelivery, NewDelivery, json_text};
use crate::event::{Event, Occurred};
use crate::queue::insert::{NewEvent, insert_event, insert_more};
use crate::wake::Waker;

/// An event could not be recorded. Roll the transaction back, or leave the event out.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The event itself cannot be stored. Nothing was written and the transaction is still good.
    #[error("event {kind} cannot be recorded: {source}")]
    InvalidEvent {
        /// Its kind.
        kind: &'static str,
        /// Why.
        source: InvalidDelivery,
    },
    /// A delivery of it cannot be stored. Nothing was written and the transaction is still good.
    #[error("a delivery cannot be recorded: {0}")]
    InvalidDelivery(#[from] InvalidDelivery),
    /// The database refused or failed; the transaction cannot be committed any more.
    #[error("the database failed while recording")]
    Database(#[from] sqlx::Error),
}

/// Records events for the channels it was made with. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Recorder {
    channels: Channels,
    waker: Waker,
}

impl Recorder {
    /// A recorder for a process that runs no actors: polling picks up what it records, within a second. A process with
    /// actors uses [`Subsystem::recorder`](crate::Subsystem::recorder), which wakes them.
    pub fn new(channels: Channels) -> Self {
        Self::waking(channels, Waker::silent())
    }

    pub(crate) fn waking(channels: Channels, waker: Waker) -> Self {
        Self { channels, waker }
    }

    /// Writes `event` and all its deliveries on `connection`, which is inside the caller's transaction. Commit: all of
    /// them. Roll back: none. Call [`Recorded::committed`] after the commit.
    ///
    /// Keys of ordered deliveries stay locked until the transaction ends, so commit soon.
    ///
    /// # Errors
    /// See [`RecordError`].
    pub async fn record<E: Event>(&self, connection: &mut PgConnection, event: &E) -> Result<Recorded, RecordError> {
        self.record_reporting(connection, event, &mut |_| ()).await
    }

    /// The same for an event that causes very many deliveries: `progress` hears how many are written so far, a page at a
    /// time.
    ///
    /// # Errors
    /// As [`Recorder::record`].
    pub async fn record_reporting<E: Event>(
        &self,
        connection: &mut PgConnection,
        event: &E,
        progress: &mut (dyn FnMut(u64) + Send),
    ) -> Result<Recorded, RecordError> {
        let payload =
            json_text("event", event).map_err(|source| RecordError::InvalidEvent { kind: E::KIND, source })?;
        let id = Uuid::now_v7();
        let occurred = Occurred::new(id, event);
        let mut deliveries: Vec<(ChannelName, NewDelivery)> = Vec::new();
        for channel in self.channels.iter() {
            let name = channel.name();
            let made = channel.deliveries(&mut *connection, &occurred).await?;
            deliveries.extend(made.into_iter().map(|delivery| (name.clone(), delivery)));
        }
        let new = NewEvent { id, kind: E::KIND, payload: &payload };
        let ids = insert_event(&mut *connection, &new, &deliveries).await?;
        // Claimers need not look now for what is due later.
        let due = deliveries.into_iter().filter(|(_, delivery)| delivery.delay.is_zero());
        let mut channels: BTreeSet<ChannelName> = due.map(|(channel, _)| channel).collect();
        let mut paged = 0;
        for channel in self.channels.iter() {
            let before = paged;
            let mut after = None;
            while let Some(page) = channel.page(&mut *connection, &occurred, after).await? {
                paged += insert_page(&mut *connection, id, channel.name(), page.deliveries).await?;
                progress(paged);
                after = Some(page.last);
            }
            if paged > before {
                channels.insert(channel.name());
            }
        }
        Ok(Recorded { event: id, deliveries: ids, paged, channels, waker: self.waker.clone() })
    }
}

async fn insert_page(
    connection: &mut PgConnection,
    event: Uuid,
    channel: ChannelName,
    deliveries: Vec<NewDelivery>,
) -> Result<u64, RecordError> {
    if deliveries.iter().any(|delivery| delivery.ordering_key.is_some()) {
        return Err(InvalidDelivery::OrderedInPage.into());
    }
    let deliveries: Vec<_> = deliveries.into_iter().map(|delivery| (channel.clone(), delivery)).collect();
    Ok(insert_more(connection, event, &deliveries).await?)
}

/// What was recorded; it is there once the transaction commits.
#[derive(Debug)]
pub struct Recorded {
    /// The event's id.
    pub event: Uuid,
    /// The deliveries that it causes.
    pub deliveries: Vec<DeliveryId>,
    /// How many more it causes, made in pages: their ids are not kept.
    pub paged: u64,
    channels: BTreeSet<ChannelName>,
    waker: Waker,
}

impl Recorded {
    /// Says that the transaction is committed: wakes this process's claimers at once and others by a notification.
    /// Left out, polling picks the deliveries up within a second.
    pub fn committed(self) {
        self.waker.wake(&self.channels);
    }
}
