//! The laws against the model queue, under paused time, and what only virtual time can show.
#![allow(clippy::unwrap_used)]

mod loud;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use postrider_actors::laws::{Harness, channel};
use postrider_actors::model::{MarkEffect, Model, ModelQueue};
use postrider_actors::{ActorState, Attempted, Engine, EngineChannel, EngineConfig, Lease, Outcome, Transport};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::loud::Loud;

async fn model() -> Model {
    Model(ModelQueue::new())
}

mod queue {
    postrider_actors::queue_laws!(
        #[tokio::test(start_paused = true)]
        super::model
    );
}

mod tree {
    postrider_actors::tree_laws!(
        #[tokio::test(start_paused = true)]
        super::model
    );
}

struct Prompt;

#[async_trait]
impl Transport<MarkEffect> for Prompt {
    async fn attempt(&self, _lease: &Lease) -> Attempted<MarkEffect> {
        Outcome::Succeeded.into()
    }
}

async fn start(model: &Model) -> Engine {
    let channels = vec![EngineChannel { policy: channel(), transport: Arc::new(Prompt) }];
    Engine::start(model.queue(), channels, EngineConfig::default(), None).await.unwrap()
}

/// Ten minutes without a database: no busy loop, no restart, no flood in the log, and work again at once when it is back.
#[tokio::test(start_paused = true)]
async fn a_queue_that_is_away_is_asked_seldom_and_found_again_soon() {
    let loud = Loud::default();
    let _logging = tracing_subscriber::registry().with(loud.clone()).set_default();
    let model = model().await;
    let engine = start(&model).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(loud.said(), [""; 0]);
    model.set_reachable(false).await;
    let before = model.0.calls();
    tokio::time::sleep(Duration::from_secs(600)).await;
    let asked = model.0.calls() - before;
    assert!((100..400).contains(&asked), "asked {asked} times in ten minutes");
    let health = engine.health();
    assert_eq!(health.channels[0].state, ActorState::DatabaseUnreachable);
    assert!(health.actors.iter().all(|actor| actor.restarts == 0));
    // The claimer, cleanup and the gauge: each no more than once a minute.
    let said = loud.said().len();
    assert!((3..=30).contains(&said), "said {said} times in ten minutes");
    model.set_reachable(true).await;
    tokio::time::sleep(Duration::from_secs(6)).await;
    assert!(engine.health().is_well());
    assert_eq!(loud.said().len(), said, "its end is no warning");
    engine.shut_down().await;
}

/// At rest a channel costs about one query a second, and the shared actors next to none.
#[tokio::test(start_paused = true)]
async fn an_idle_channel_asks_once_a_second() {
    let model = model().await;
    let engine = start(&model).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    let before = model.0.calls();
    tokio::time::sleep(Duration::from_secs(600)).await;
    let asked = model.0.calls() - before;
    assert!((600..700).contains(&asked), "asked {asked} times in ten minutes");
    engine.shut_down().await;
}
