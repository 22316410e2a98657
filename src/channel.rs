//! A channel: a name, a MAX_AGE, the deliveries it makes of an event, and a transport.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use postrider_actors::{ChannelName, ChannelPolicy, ConfigError, Transport};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::delivery::NewDelivery;
use crate::event::Occurred;
use crate::queue::{Effect, Reads};
use crate::recorder::RecordError;

/// A kind of delivery with its own sender, its own workers and its own MAX_AGE.
#[async_trait]
pub trait Channel: Send + Sync + 'static {
    /// Its name in rows, metrics and the CLI.
    fn name(&self) -> ChannelName;

    /// Past this age, counted from creation or the last operator retry, a delivery fails unsent.
    fn max_age(&self) -> Duration;

    /// The deliveries that `event` causes in this channel, read in the transaction that records it; none for events that
    /// are not this channel's.
    async fn deliveries(
        &self,
        connection: &mut PgConnection,
        event: &Occurred<'_>,
    ) -> Result<Vec<NewDelivery>, RecordError>;

    /// A page of the deliveries of an event that causes more than are held in memory at once: as many as the channel likes,
    /// beginning after `after`, which is the last page's [`Page::last`]. It is asked for the next until there is none, and each
    /// is inserted before the next is read. They are unordered.
    async fn page(
        &self,
        connection: &mut PgConnection,
        event: &Occurred<'_>,
        after: Option<Uuid>,
    ) -> Result<Option<Page>, RecordError> {
        let _ = (connection, event, after);
        Ok(None)
    }

    /// What performs an attempt. What it needs of the host's tables it reads through `reads`, before it sends.
    fn transport(&self, reads: &Reads) -> Arc<dyn Transport<Effect>>;
}

/// Some of the deliveries of one event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The deliveries.
    pub deliveries: Vec<NewDelivery>,
    /// Where the next page begins.
    pub last: Uuid,
}

/// The channels of a host, each name once.
#[derive(Clone)]
pub struct Channels(Arc<[Arc<dyn Channel>]>);

impl Channels {
    /// Registers channels.
    ///
    /// # Errors
    /// A name that is there twice.
    pub fn new(channels: Vec<Arc<dyn Channel>>) -> Result<Self, ConfigError> {
        for (index, channel) in channels.iter().enumerate() {
            let name = channel.name();
            if channels[..index].iter().any(|earlier| earlier.name() == name) {
                return Err(ConfigError::DuplicateChannel { channel: name.to_string() });
            }
        }
        Ok(Self(channels.into()))
    }

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<dyn Channel>> {
        self.0.iter()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True where there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The names and MAX_AGEs.
    pub fn policies(&self) -> Vec<ChannelPolicy> {
        self.iter().map(|channel| ChannelPolicy { name: channel.name(), max_age: channel.max_age() }).collect()
    }
}

impl std::fmt::Debug for Channels {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter().map(|channel| channel.name())).finish()
    }
}
