//! The channels of the hosts in this test: one ordered, one not, both posting to the test's receiver.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use postrider::channel::{Channel, Channels};
use postrider::outbound::{AddressPolicy, Destination, HeaderMap, HttpsClient, judge};
use postrider::queue::{Effect, Reads};
use postrider::{Event, NewDelivery, Occurred, RecordError};
use postrider_actors::{Attempted, ChannelName, Lease, Outcome, Reason, Transport};
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;

use crate::worker_log::{Attempt, WorkerLog};

/// In the order of their numbers.
pub const CHANNELS: [&str; 2] = ["chaos_ordered", "chaos_unordered"];

pub fn name(channel: usize) -> ChannelName {
    CHANNELS[channel].parse().unwrap()
}

/// Causes one delivery of a key, or one without, or both.
#[derive(Serialize)]
pub struct Happened {
    pub key: Option<String>,
    pub unordered: bool,
    pub text: u64,
    pub destination: String,
}

impl Event for Happened {
    const KIND: &'static str = "happened";
}

/// What is posted. All but the first two lines are of one attempt.
#[derive(Serialize, Deserialize)]
pub struct Message {
    pub delivery: uuid::Uuid,
    pub text: u64,
    pub channel: usize,
    pub attempt: u32,
    pub replica: u32,
}

struct ChaosChannel {
    channel: usize,
    transport: Arc<dyn Transport<Effect>>,
}

#[async_trait]
impl Channel for ChaosChannel {
    fn name(&self) -> ChannelName {
        name(self.channel)
    }

    fn max_age(&self) -> Duration {
        Duration::from_secs(3600)
    }

    async fn deliveries(&self, _: &mut PgConnection, event: &Occurred<'_>) -> Result<Vec<NewDelivery>, RecordError> {
        let Some(happened) = event.of::<Happened>() else { return Ok(Vec::new()) };
        let delivery = || NewDelivery::new("owner", happened.destination.as_str(), &happened.text);
        Ok(match (self.channel, &happened.key) {
            (0, Some(key)) => vec![delivery()?.ordered_by(key.as_str())?],
            (1, _) if happened.unordered => vec![delivery()?],
            _ => Vec::new(),
        })
    }

    fn transport(&self, _: &Reads) -> Arc<dyn Transport<Effect>> {
        Arc::clone(&self.transport)
    }
}

/// For processes that record and never send.
struct Nobody;

#[async_trait]
impl Transport<Effect> for Nobody {
    async fn attempt(&self, _lease: &Lease) -> Attempted<Effect> {
        Outcome::Succeeded.into()
    }
}

struct Post {
    client: Arc<HttpsClient>,
    channel: usize,
    log: WorkerLog,
}

#[async_trait]
impl Transport<Effect> for Post {
    async fn attempt(&self, lease: &Lease) -> Attempted<Effect> {
        let attempt = Attempt::begins(&self.log, lease);
        let outcome = self.post(lease).await;
        attempt.ends(&outcome);
        outcome.into()
    }
}

impl Post {
    async fn post(&self, lease: &Lease) -> Outcome {
        let Ok(text) = serde_json::from_str(&lease.delivery.payload) else {
            return Outcome::failed(Reason::UnreadablePayload);
        };
        let Ok(destination) = Destination::parse_with(&lease.delivery.destination, self.client.policy()) else {
            return Outcome::failed(Reason::RefusedDestination);
        };
        let (delivery, attempt, replica) = (lease.delivery.id.as_uuid(), lease.attempt, self.log.replica());
        let message = Message { delivery, text, channel: self.channel, attempt, replica };
        let body = serde_json::to_vec(&message).unwrap();
        judge(&self.client.post(&destination, HeaderMap::new(), body.into()).await)
    }
}

fn channels(transport: impl Fn(usize) -> Arc<dyn Transport<Effect>>) -> Channels {
    let made = (0..CHANNELS.len())
        .map(|channel| Arc::new(ChaosChannel { channel, transport: transport(channel) }) as Arc<dyn Channel>);
    Channels::new(made.collect()).unwrap()
}

pub fn recording() -> Channels {
    channels(|_| Arc::new(Nobody))
}

pub fn posting(client: HttpsClient, log: &WorkerLog) -> Channels {
    let client = Arc::new(client);
    channels(|channel| Arc::new(Post { client: Arc::clone(&client), channel, log: log.clone() }))
}

/// Admits loopback, where the receiver is.
pub fn loopback() -> AddressPolicy {
    AddressPolicy::allowing_networks_for_tests_and_demos(vec!["127.0.0.0/8".parse().unwrap()])
}
