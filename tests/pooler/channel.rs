//! A channel whose effects tell what the actors' sessions are set to.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use postrider::channel::{Channel, Channels};
use postrider::queue::{Effect, Reads};
use postrider::{Event, NewDelivery, Occurred, RecordError};
use postrider_actors::{Attempted, ChannelName, Lease, Outcome, Transport};
use sqlx::PgConnection;

#[derive(Debug, serde::Serialize)]
pub struct Happened;

impl Event for Happened {
    const KIND: &'static str = "happened";
}

/// Each event is one delivery, ordered by a key, which succeeds.
#[derive(Debug, Clone, Default)]
pub struct Telling {
    /// What the sessions were set to that recorded its outcomes.
    pub settings: Arc<Mutex<BTreeSet<Vec<String>>>>,
}

impl Telling {
    pub fn channels(&self) -> Channels {
        Channels::new(vec![Arc::new(self.clone()) as Arc<dyn Channel>]).unwrap()
    }
}

#[async_trait]
impl Channel for Telling {
    fn name(&self) -> ChannelName {
        "telling".parse().unwrap()
    }

    fn max_age(&self) -> Duration {
        Duration::from_secs(3600)
    }

    async fn deliveries(&self, _: &mut PgConnection, event: &Occurred<'_>) -> Result<Vec<NewDelivery>, RecordError> {
        assert!(event.of::<Happened>().is_some());
        let key = format!("key {}", uuid::Uuid::new_v4());
        Ok(vec![NewDelivery::new("owner", "destination", &serde_json::json!({}))?.ordered_by(key.as_str())?])
    }

    fn transport(&self, _: &Reads) -> Arc<dyn Transport<Effect>> {
        Arc::new(self.clone())
    }
}

/// But `statement_timeout`, which is another one while an effect is applied.
pub const SETTINGS: &str = "select array[
    current_setting('idle_in_transaction_session_timeout'), current_setting('client_connection_check_interval'),
    current_setting('default_transaction_isolation'), current_setting('plan_cache_mode'),
    current_setting('enable_seqscan')]";

#[async_trait]
impl Transport<Effect> for Telling {
    async fn attempt(&self, _: &Lease) -> Attempted<Effect> {
        let settings = Arc::clone(&self.settings);
        let effect = Effect::new(move |connection| {
            let settings = Arc::clone(&settings);
            Box::pin(async move {
                let seen: Vec<String> = sqlx::query_scalar(SETTINGS).fetch_one(connection).await?;
                settings.lock().unwrap().insert(seen);
                Ok(())
            })
        });
        Attempted { effect: Some(effect), ..Outcome::Succeeded.into() }
    }
}
