//! C42: connections to the database that fail in each way a network can, with the subsystem behind a relay.

use std::time::Duration;

use postrider::{Subsystem, SubsystemConfig};
use postrider_actors::laws::{Harness, wishes};
use postrider_actors::{ActorState, DeliveryId, EngineConfig, Status};
use tokio::time::timeout;

use crate::embedding::channels;
use crate::harness::{Postgres, postgres};
use crate::support::eventually;
use crate::support::relay::{Line, Relay};

/// The deadline of what takes a few polls, timeouts and reconnects.
const SOON: Duration = Duration::from_secs(30);
const SHUTDOWN: Duration = Duration::from_secs(2);

fn config() -> SubsystemConfig {
    let engine = EngineConfig {
        queue_timeout: Duration::from_secs(1),
        send_timeout: Duration::from_secs(1),
        shutdown_deadline: SHUTDOWN,
        ..EngineConfig::default()
    };
    let listening_check_interval = Duration::from_millis(500);
    SubsystemConfig { engine, listening_check_interval, ..SubsystemConfig::default() }
}

/// Polls so rarely that only a wake-up can be what was seen.
fn rarely_polling() -> SubsystemConfig {
    let engine = EngineConfig { poll_interval: Duration::from_secs(3600), ..config().engine };
    SubsystemConfig { engine, ..config() }
}

struct World {
    postgres: Postgres,
    relay: Relay,
    subsystem: Subsystem,
}

async fn world(config: SubsystemConfig) -> World {
    let postgres = postgres().await;
    let relay = Relay::start(&postgres.database.options()).await;
    let subsystem = Subsystem::spawn(relay.options(), channels(&["laws", "other"]), config).await.unwrap();
    let world = World { postgres, relay, subsystem };
    world.hears(true).await;
    world
}

impl World {
    async fn hears(&self, hears: bool) {
        let what = if hears { "notifications are heard" } else { "it is noticed that they are not" };
        eventually(SOON, what, async || self.subsystem.health().hears_other_processes == hears).await;
    }

    async fn record(&self) -> DeliveryId {
        self.postgres.record(wishes(1, None)).await[0]
    }

    async fn is_delivered(&self, id: DeliveryId) {
        eventually(SOON, "it is delivered", async || {
            self.postgres.look(id).await.is_some_and(|look| look.status == Status::Succeeded)
        })
        .await;
    }

    async fn states_become(&self, state: ActorState) {
        let all = async || self.subsystem.health().tree.channels.iter().all(|channel| channel.state == state);
        eventually(SOON, &format!("every channel is {}", state.as_str()), all).await;
    }

    fn restarted_nothing(&self) {
        assert!(self.subsystem.health().tree.actors.iter().all(|actor| actor.restarts == 0));
    }

    /// Within its deadline, and what an ending pool may take.
    async fn shuts_down_in_time(&self) {
        let bound = SHUTDOWN + Duration::from_secs(8);
        timeout(bound, self.subsystem.shut_down()).await.expect("shutdown ends within its deadline");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c42_a_listening_connection_that_is_silently_dead_is_noticed_and_polling_delivers_meanwhile() {
    let world = world(config()).await;
    world.relay.set_listening(Line::Swallows);
    let id = world.record().await;
    world.is_delivered(id).await;
    world.hears(false).await;
    let id = world.record().await;
    world.is_delivered(id).await;
    world.relay.set_listening(Line::Passes);
    world.hears(true).await;
    world.restarted_nothing();
    world.shuts_down_in_time().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c42_a_listener_that_was_ended_listens_again_and_looks_at_once_for_what_it_missed() {
    let world = world(rarely_polling()).await;
    // Whoever listens now is cut, so that what is recorded meanwhile is told to nobody.
    let before = world.relay.listens();
    let end = "select pg_terminate_backend(pid) from pg_stat_activity
                where datname = current_database() and application_name = 'postrider' and query like 'LISTEN%'";
    let pool = world.postgres.database.pool();
    assert_eq!(sqlx::query(end).execute(pool).await.unwrap().rows_affected(), 1);
    world.relay.set_listening(Line::Resets);
    world.hears(false).await;
    let missed = world.record().await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let tries = world.relay.listens() - before;
    assert!((1..=8).contains(&tries), "tried {tries} times in 5 s");
    assert_eq!(world.postgres.look(missed).await.unwrap().status, Status::Pending);
    world.relay.set_listening(Line::Passes);
    world.is_delivered(missed).await;
    world.hears(true).await;
    let id = world.record().await;
    sqlx::query("select pg_notify('postrider_wake', 'laws')").execute(pool).await.unwrap();
    world.is_delivered(id).await;
    world.restarted_nothing();
    world.shuts_down_in_time().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c42_a_database_that_was_away_is_found_again_by_itself_without_a_busy_loop() {
    let world = world(config()).await;
    for away in [Line::Resets, Line::Closes, Line::Swallows] {
        world.relay.set(away);
        world.states_become(ActorState::DatabaseUnreachable).await;
        let before = world.relay.connections();
        let id = world.record().await;
        tokio::time::sleep(Duration::from_secs(4)).await;
        let tries = world.relay.connections() - before;
        assert!(tries <= 80, "{away:?}: {tries} connections in 4 s");
        world.relay.set(Line::Passes);
        world.is_delivered(id).await;
        world.hears(true).await;
        world.states_become(ActorState::Running).await;
    }
    world.restarted_nothing();
    world.shuts_down_in_time().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c42_a_shutdown_ends_within_its_deadline_though_every_connection_is_silently_dead() {
    let world = world(config()).await;
    world.relay.set(Line::Swallows);
    world.shuts_down_in_time().await;
    assert!(world.subsystem.health().tree.actors.iter().all(|actor| actor.state == ActorState::Stopped));
}
