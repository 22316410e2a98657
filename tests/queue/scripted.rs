//! Channels whose attempts do what a test wants, and keep a log that the database knows nothing of.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use postrider::channel::{Channel, Channels};
use postrider::queue::{Effect, Reads};
use postrider::{NewDelivery, Occurred, RecordError, Subsystem, SubsystemConfig};
use postrider_actors::laws::channel_named;
use postrider_actors::{Attempted, ChannelName, DeliveryId, Lease, Outcome, Transport};
use sqlx::PgConnection;

use crate::harness::{Postgres, Wishing};

type Acting = Pin<Box<dyn Future<Output = Outcome> + Send>>;

/// What is done for each attempt.
#[derive(Clone)]
pub struct Script {
    act: Arc<dyn Fn(Lease) -> Acting + Send + Sync>,
    log: Arc<Mutex<Vec<(DeliveryId, u32)>>>,
}

impl Script {
    pub fn new<F>(act: impl Fn(Lease) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Outcome> + Send + 'static,
    {
        Self { act: Arc::new(move |lease| Box::pin(act(lease))), log: Arc::default() }
    }

    /// Deliveries and attempts as they came to be sent.
    pub fn log(&self) -> Vec<(DeliveryId, u32)> {
        self.log.lock().unwrap().clone()
    }

    pub fn sent(&self, delivery: DeliveryId) -> usize {
        self.log().iter().filter(|(sent, _)| *sent == delivery).count()
    }
}

#[async_trait]
impl Transport<Effect> for Script {
    async fn attempt(&self, lease: &Lease) -> Attempted<Effect> {
        self.log.lock().unwrap().push((lease.delivery.id, lease.attempt));
        (self.act)(lease.clone()).await.into()
    }
}

struct Scripted {
    wishing: Wishing,
    script: Script,
}

#[async_trait]
impl Channel for Scripted {
    fn name(&self) -> ChannelName {
        self.wishing.name()
    }

    fn max_age(&self) -> Duration {
        self.wishing.max_age()
    }

    async fn deliveries(
        &self,
        connection: &mut PgConnection,
        event: &Occurred<'_>,
    ) -> Result<Vec<NewDelivery>, RecordError> {
        self.wishing.deliveries(connection, event).await
    }

    fn transport(&self, _: &Reads) -> Arc<dyn Transport<Effect>> {
        Arc::new(self.script.clone())
    }
}

/// The channels `laws` and `other`, sent by `script`.
pub fn channels(script: &Script) -> Channels {
    let scripted = ["laws", "other"].map(|name| {
        let wishing = Wishing(channel_named(name).name);
        Arc::new(Scripted { wishing, script: script.clone() }) as Arc<dyn Channel>
    });
    Channels::new(scripted.into()).unwrap()
}

/// A subsystem whose channels are sent by `script`.
pub async fn subsystem(postgres: &Postgres, script: &Script, config: SubsystemConfig) -> Subsystem {
    Subsystem::spawn(postgres.database.options(), channels(script), config).await.unwrap()
}
