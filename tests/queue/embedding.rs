//! The subsystem as a host embeds it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use postrider::channel::{Channel, Channels};
use postrider::{SetupError, Subsystem, SubsystemConfig};
use postrider_actors::laws::{Harness, channel, channel_named, wishes};
use postrider_actors::{ActorState, ChildId, ConfigError, EngineConfig, Queue, Search, Status};
use ractor::{Actor, ActorProcessingErr, ActorRef, SupervisionEvent};

use crate::harness::{Postgres, Wished, Wishing, postgres};
use crate::support::{self, eventually};

const SOON: Duration = Duration::from_secs(10);

pub fn channels(names: &[&str]) -> Channels {
    let channels = names.iter().map(|name| Arc::new(Wishing(channel_named(name).name)) as Arc<dyn Channel>);
    Channels::new(channels.collect()).unwrap()
}

async fn subsystem(postgres: &Postgres, config: SubsystemConfig) -> Subsystem {
    Subsystem::spawn(postgres.database.options(), channels(&["laws", "other"]), config).await.unwrap()
}

/// Polls so rarely that only a wake-up can be what was seen.
fn rarely_polling() -> SubsystemConfig {
    let engine = EngineConfig { poll_interval: Duration::from_secs(3600), ..EngineConfig::default() };
    SubsystemConfig { engine, ..SubsystemConfig::default() }
}

async fn is_succeeded(postgres: &Postgres, delivery: postrider_actors::DeliveryId) -> bool {
    postgres.look(delivery).await.is_some_and(|look| look.status == Status::Succeeded)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_wakes_the_claimers_of_its_own_process_and_of_others() {
    let postgres = postgres().await;
    let here = subsystem(&postgres, rarely_polling()).await;
    eventually(SOON, "notifications are heard", async || here.health().hears_other_processes).await;
    let mut connection = postgres.database.connect().await;
    let recorded = here.recorder().record(&mut connection, &Wished(wishes(1, None))).await.unwrap();
    let id = recorded.deliveries[0];
    recorded.committed();
    eventually(SOON, "its own claimers are awake", async || is_succeeded(&postgres, id).await).await;

    // Another process records, with actors that are gone before they could send.
    let elsewhere = subsystem(&postgres, rarely_polling()).await;
    let recorder = elsewhere.recorder();
    eventually(SOON, "its first look is over", async || elsewhere.health().tree.is_well()).await;
    elsewhere.kill(&ChildId::Sender(channel().name, postrider_actors::SenderIndex::BOTH[0]));
    let recorded = recorder.record(&mut connection, &Wished(wishes(1, None))).await.unwrap();
    let id = recorded.deliveries[0];
    recorded.committed();
    eventually(SOON, "it is delivered", async || is_succeeded(&postgres, id).await).await;
    here.shut_down().await;
    elsewhere.shut_down().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_notification_alone_wakes_a_process_that_did_not_record() {
    let postgres = postgres().await;
    let here = subsystem(&postgres, rarely_polling()).await;
    eventually(SOON, "notifications are heard", async || here.health().hears_other_processes).await;
    let id = postgres.record(wishes(1, None)).await[0];
    let notify = sqlx::query("select pg_notify('postrider_wake', 'laws')");
    notify.execute(postgres.database.pool()).await.unwrap();
    eventually(SOON, "it is delivered", async || is_succeeded(&postgres, id).await).await;
    here.shut_down().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_wake_ups_polling_alone_delivers() {
    let postgres = postgres().await;
    let here = subsystem(&postgres, SubsystemConfig { wake_ups: false, ..SubsystemConfig::default() }).await;
    let id = postgres.record(wishes(1, None)).await[0];
    eventually(SOON, "it is delivered", async || is_succeeded(&postgres, id).await).await;
    assert!(!here.health().hears_other_processes);
    here.shut_down().await;
}

/// A host's own supervisor.
struct Parent(Arc<Mutex<Vec<&'static str>>>);

impl Actor for Parent {
    type Msg = ();
    type State = ();
    type Arguments = ();

    async fn pre_start(&self, _me: ActorRef<()>, (): ()) -> Result<(), ActorProcessingErr> {
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        _me: ActorRef<()>,
        event: SupervisionEvent,
        _state: &mut (),
    ) -> Result<(), ActorProcessingErr> {
        match event {
            SupervisionEvent::ActorTerminated(..) => self.0.lock().unwrap().push("terminated"),
            SupervisionEvent::ActorFailed(..) => self.0.lock().unwrap().push("failed"),
            _ => {}
        }
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_parent_actor_hears_of_the_subsystems_end_and_ends_it_with_its_own() {
    let postgres = postgres().await;
    let heard = Arc::new(Mutex::new(Vec::new()));
    let (parent, _) = Actor::spawn(None, Parent(Arc::clone(&heard)), ()).await.unwrap();
    let linked = async || {
        let (options, config) = (postgres.database.options(), SubsystemConfig::default());
        Subsystem::spawn_linked(options, channels(&["laws"]), config, parent.get_cell()).await.unwrap()
    };
    linked().await.shut_down().await;
    eventually(SOON, "an orderly end is heard", async || heard.lock().unwrap().len() == 1).await;
    linked().await.kill(&ChildId::Supervisor);
    eventually(SOON, "a crash is heard", async || heard.lock().unwrap().len() == 2).await;
    let last = linked().await;
    parent.stop(None);
    tokio::time::timeout(SOON, last.ended()).await.expect("ends with its parent");
    assert!(last.health().tree.actors.iter().all(|actor| actor.state == ActorState::Stopped));
    assert_eq!(last.shut_down().await.aborted_attempts, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tree_is_as_drawn_and_every_actors_health_is_there() {
    let postgres = postgres().await;
    let here = subsystem(&postgres, SubsystemConfig::default()).await;
    eventually(SOON, "all is well", async || here.health().tree.actors.len() == 9 && here.health().tree.is_well())
        .await;
    let health = here.health().tree;
    let names: Vec<String> = health.actors.iter().map(|actor| actor.child.to_string()).collect();
    assert_eq!(
        names,
        [
            "supervisor",
            "laws/claimer",
            "other/claimer",
            "laws/sender 0",
            "laws/sender 1",
            "other/sender 0",
            "other/sender 1",
            "cleanup",
            "gauge"
        ]
    );
    eventually(SOON, "the gauge has counted", async || {
        here.health()
            .tree
            .channels
            .iter()
            .all(|channel| channel.pending.as_ref().is_some_and(|count| count.pending == 0))
    })
    .await;
    here.shut_down().await;
    assert!(here.health().tree.actors.iter().all(|actor| actor.state == ActorState::Stopped));
}

async fn refused(postgres: &Postgres, config: SubsystemConfig) -> SetupError {
    Subsystem::spawn(postgres.database.options(), channels(&["laws"]), config).await.unwrap_err()
}

fn engine(change: impl FnOnce(&mut EngineConfig)) -> SubsystemConfig {
    let mut config = SubsystemConfig::default();
    change(&mut config.engine);
    config
}

#[tokio::test]
async fn settings_that_cannot_keep_a_guarantee_are_refused_with_both_named() {
    let postgres = postgres().await;
    let seconds = Duration::from_secs;
    for (config, named) in [
        (engine(|engine| engine.send_timeout = seconds(50)), ["send timeout", "lease"]),
        (engine(|engine| engine.queue_timeout = seconds(11)), ["queue timeout", "recording margin"]),
        (engine(|engine| engine.shutdown_deadline = seconds(9)), ["shutdown deadline", "send timeout"]),
        (engine(|engine| engine.backoff.cap = seconds(3601)), ["backoff cap", "MAX_AGE of channel laws"]),
        (engine(|engine| engine.backoff.first = seconds(3601)), ["first backoff", "backoff cap"]),
        (engine(|engine| engine.poll_interval = seconds(0)), ["poll interval", "zero"]),
    ] {
        let refused = refused(&postgres, config).await;
        assert!(matches!(refused, SetupError::Config(_)));
        assert!(named.iter().all(|setting| refused.to_string().contains(setting)), "{refused}");
    }
    let small = refused(&postgres, SubsystemConfig { pool_size: Some(7), ..SubsystemConfig::default() }).await;
    assert!(small.to_string().contains("pool size (7)") && small.to_string().contains("at least 8"), "{small}");
    let exact = engine(|engine| engine.send_timeout = seconds(50) - Duration::from_nanos(1));
    let exact = SubsystemConfig { engine: EngineConfig { shutdown_deadline: seconds(50), ..exact.engine }, ..exact };
    let allowed = Subsystem::spawn(postgres.database.options(), channels(&["laws"]), exact).await.unwrap();
    allowed.shut_down().await;
}

#[tokio::test]
async fn a_database_that_is_not_there_or_not_migrated_is_refused() {
    let empty = support::empty_database().await;
    let config = SubsystemConfig::default;
    let unmigrated = Subsystem::spawn(empty.options(), channels(&["laws"]), config()).await.unwrap_err();
    assert!(unmigrated.to_string().contains("postrider migrate"), "{unmigrated}");
    let missing = empty.options().database("no_such_database");
    let unreachable = Subsystem::spawn(missing, channels(&["laws"]), config()).await.unwrap_err();
    assert!(matches!(unreachable, SetupError::Unreachable(_)));
    let twice = ConfigError::DuplicateChannel { channel: "laws".into() };
    assert_eq!(twice.to_string(), "channel laws is registered twice");
}

/// "Tested, not believed": a call to the database that is dropped in the middle leaves nothing behind.
#[tokio::test(flavor = "multi_thread")]
async fn an_actor_killed_inside_a_database_call_leaves_no_connection_in_an_open_transaction() {
    let postgres = postgres().await;
    let pool = crate::harness::pool(postgres.database.options());
    let queue = Arc::new(postrider::queue::PgQueue::new(pool.clone()));
    postgres.record(wishes(20, Some("key"))).await;
    let slots = 10.try_into().unwrap();
    let lease = queue.claim(&channel().name, slots, Duration::from_secs(60), Search::All).await.unwrap().remove(0);
    // The recording is stopped in its transaction by a lock on the row, and dropped there.
    let mut blocker = postgres.database.pool().begin().await.unwrap();
    let lock = "select from postrider.deliveries where id = $1 for update";
    sqlx::query(lock).bind(lease.delivery.id.as_uuid()).execute(&mut *blocker).await.unwrap();
    let (delivery, token) = (lease.delivery.id, lease.token);
    let verdict = postrider_actors::Verdict::Succeeded;
    let ended = postrider_actors::Ended { delivery, token, ordered: true, verdict, effect: None };
    let recording = tokio::spawn({
        let queue = Arc::clone(&queue);
        async move { queue.record(&channel(), &[ended]).await.map(|_| ()) }
    });
    let state = |wanted: &'static str| {
        let pool = postgres.database.pool().clone();
        async move {
            let count = "select count(*) from pg_stat_activity where application_name = 'postrider'
                            and datname = current_database() and (state = $1 or wait_event_type = $1)";
            sqlx::query_scalar::<_, i64>(count).bind(wanted).fetch_one(&pool).await.unwrap()
        }
    };
    eventually(SOON, "the recording waits for the row", async || state("Lock").await == 1).await;
    let backend: i32 = sqlx::query_scalar(
        "select pid from pg_stat_activity where application_name = 'postrider' and datname = current_database()
            and wait_event_type = 'Lock'",
    )
    .fetch_one(postgres.database.pool())
    .await
    .unwrap();
    recording.abort();
    assert!(recording.await.unwrap_err().is_cancelled());
    blocker.rollback().await.unwrap();
    eventually(SOON, "no transaction is left open", async || {
        state("idle in transaction").await == 0 && state("active").await == 0
    })
    .await;
    eventually(SOON, "its connection is closed, and nobody inherits it", async || {
        let there = "select exists (select from pg_stat_activity where pid = $1)";
        !sqlx::query_scalar::<_, bool>(there).bind(backend).fetch_one(postgres.database.pool()).await.unwrap()
    })
    .await;
    // The pool still works, every connection of it.
    let calls = (0..16).map(|_| {
        let queue = Arc::clone(&queue);
        tokio::spawn(async move { queue.count_pending(&[channel().name]).await.unwrap() })
    });
    for call in calls.collect::<Vec<_>>() {
        call.await.unwrap();
    }
    // Either it was recorded before the drop reached the server or not; both leave the row whole.
    let look = postgres.look(lease.delivery.id).await.unwrap();
    assert!(matches!(look.status, Status::Pending | Status::Succeeded));
}
