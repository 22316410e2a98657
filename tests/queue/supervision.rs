//! Supervision at its edges, through the real subsystem.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use chrono::Utc;
use postrider::{Subsystem, SubsystemConfig, queue};
use postrider_actors::laws::{Harness, Wish, channel_named, wishes};
use postrider_actors::{ActorState, DeliveryId, EngineConfig, Jitter, Outcome, Reason, Status};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

use crate::harness::{Postgres, postgres};
use crate::scripted::{Script, subsystem};
use crate::support::eventually;

const SOON: Duration = Duration::from_secs(30);

async fn is(postgres: &Postgres, id: DeliveryId, status: Status) -> bool {
    postgres.look(id).await.is_some_and(|look| look.status == status)
}

async fn succeed(postgres: &Postgres, ids: &[DeliveryId]) {
    for id in ids {
        eventually(SOON, "it is delivered", async || is(postgres, *id, Status::Succeeded).await).await;
    }
}

fn restarts(subsystem: &Subsystem) -> u64 {
    subsystem.health().tree.actors.iter().map(|actor| actor.restarts).sum()
}

fn in_flight(subsystem: &Subsystem) -> usize {
    subsystem.health().tree.actors.iter().map(|actor| actor.in_flight).sum()
}

fn with_slots(slots: usize) -> SubsystemConfig {
    let slots_per_sender = NonZeroUsize::new(slots).unwrap();
    let engine = EngineConfig { slots_per_sender, ..EngineConfig::default() };
    SubsystemConfig { engine, ..SubsystemConfig::default() }
}

/// C50, through the subsystem: two slots, three poison deliveries, a hundred good ones.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c50_a_hundred_good_deliveries_pass_three_that_panic_and_every_slot_is_free_again() {
    let postgres = postgres().await;
    let poison = postgres.record(wishes(3, None)).await;
    let script = Script::new({
        let poison = poison.clone();
        move |lease| {
            let place = poison.iter().position(|id| *id == lease.delivery.id);
            async move {
                match place {
                    Some(0) => std::panic::panic_any(7_u64),
                    Some(_) => panic!("poison"),
                    None => Outcome::Succeeded,
                }
            }
        }
    });
    let good = postgres.record(wishes(100, None)).await;
    let subsystem = subsystem(&postgres, &script, SubsystemConfig::default()).await;
    succeed(&postgres, &good).await;
    assert!(good.iter().all(|id| script.sent(*id) == 1));
    for id in poison {
        let look = postgres.look(id).await.unwrap();
        assert_eq!((look.status, look.last_error), (Status::Pending, Some(Reason::Panicked)));
    }
    eventually(SOON, "every slot is free", async || in_flight(&subsystem) == 0).await;
    assert_eq!(restarts(&subsystem), 0);
    subsystem.shut_down().await;
}

/// It alone suffers, backs off, and ends by MAX_AGE: its tenth attempt would begin after an hour.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_delivery_that_panics_every_time_ends_failed_by_max_age_and_others_go_out_meanwhile() {
    let postgres = postgres().await;
    let poison = postgres.record(wishes(1, Some("its own key"))).await[0];
    let script = Script::new(move |lease| async move {
        assert_ne!(lease.delivery.id, poison, "poison");
        Outcome::Succeeded
    });
    // Every wait is as long as its bound: 10 s, 20 s, 40 s and so on.
    let poll_interval = Duration::from_millis(50);
    let engine = EngineConfig { jitter: Jitter::from_fn(|| 0.0), poll_interval, ..EngineConfig::default() };
    let subsystem = subsystem(&postgres, &script, SubsystemConfig { engine, ..SubsystemConfig::default() }).await;
    let mut connection = postgres.database.connect().await;
    for attempt in 1..=9 {
        eventually(SOON, "the panic is recorded", async || {
            let row = queue::get(&mut connection, poison).await.unwrap().unwrap();
            row.attempts == attempt && row.leased_until.is_none()
        })
        .await;
        let others = postgres.record([wishes(3, None), wishes(2, Some("another key"))].concat()).await;
        succeed(&postgres, &others).await;
        let row = queue::get(&mut connection, poison).await.unwrap().unwrap();
        if let Some(wait) = row.due_at.and_then(|due| (due - Utc::now()).to_std().ok()) {
            postgres.let_pass(wait).await;
        }
    }
    let look = postgres.look(poison).await.unwrap();
    assert_eq!((look.status, look.last_error, look.attempts), (Status::Failed, Some(Reason::Panicked), 9));
    assert_eq!((script.sent(poison), restarts(&subsystem)), (9, 0));
    subsystem.shut_down().await;
}

/// The first attempt of this delivery blocks the thread that it runs on until it is let go, and then ends as `then`.
fn blocking(blocked: DeliveryId, then: Outcome) -> (Script, mpsc::Sender<()>) {
    let (let_go, wait) = mpsc::channel();
    let wait = Arc::new(Mutex::new(wait));
    let script = Script::new(move |lease| {
        let wait = Arc::clone(&wait);
        async move {
            if lease.delivery.id == blocked && lease.attempt == 1 {
                // In place: without it tokio's timers and sockets may hang on the very thread that is blocked.
                tokio::task::block_in_place(|| wait.lock().unwrap().recv_timeout(SOON * 2)).unwrap();
                return then;
            }
            Outcome::Succeeded
        }
    });
    (script, let_go)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_attempt_that_blocks_its_thread_stops_neither_its_channel_nor_others_and_keeps_its_lease() {
    let postgres = postgres().await;
    let blocked = postgres.record(wishes(1, None)).await[0];
    let (script, let_go) = blocking(blocked, Outcome::Succeeded);
    let subsystem = subsystem(&postgres, &script, SubsystemConfig::default()).await;
    eventually(SOON, "it blocks", async || script.sent(blocked) == 1).await;
    let mut others = wishes(10, None);
    others.extend(vec![Wish { channel: channel_named("other").name, ordering_key: None }; 10]);
    let others = postgres.record(others).await;
    succeed(&postgres, &others).await;
    // Health shows what is under way and with whom; no actor is stuck, so none is restarted.
    let health = subsystem.health().tree;
    let busy: Vec<_> = health.actors.iter().filter(|actor| actor.in_flight > 0).collect();
    assert_eq!(busy.len(), 1);
    assert!(busy[0].child.to_string().starts_with("laws/sender") && busy[0].state == ActorState::Running);
    assert_eq!(script.sent(blocked), 1, "its lease lasts");
    let_go.send(()).unwrap();
    succeed(&postgres, &[blocked]).await;
    assert_eq!((script.sent(blocked), restarts(&subsystem)), (1, 0));
    subsystem.shut_down().await;
}

/// Past its lease another sends again under the same id: at least once. The late outcome is discarded.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_attempt_that_blocks_past_its_lease_is_sent_again_by_another_and_its_own_outcome_discarded() {
    let postgres = postgres().await;
    let blocked = postgres.record(wishes(1, None)).await[0];
    let (script, let_go) = blocking(blocked, Outcome::retry(Reason::Connection));
    let subsystem = subsystem(&postgres, &script, SubsystemConfig::default()).await;
    eventually(SOON, "it blocks", async || script.sent(blocked) == 1).await;
    postgres.let_pass(EngineConfig::default().lease).await;
    succeed(&postgres, &[blocked]).await;
    assert_eq!(script.log(), [(blocked, 1), (blocked, 2)]);
    eventually(SOON, "only the first is under way", async || in_flight(&subsystem) == 1).await;
    let_go.send(()).unwrap();
    eventually(SOON, "its slot is free", async || in_flight(&subsystem) == 0).await;
    let look = postgres.look(blocked).await.unwrap();
    assert_eq!((look.status, look.attempts), (Status::Succeeded, 2));
    assert_eq!(restarts(&subsystem), 0);
    subsystem.shut_down().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_100_000_notifications_waits_as_one_hint_and_deliveries_go_on() {
    let postgres = postgres().await;
    let script = Script::new(|_| async { Outcome::Succeeded });
    let subsystem = subsystem(&postgres, &script, SubsystemConfig::default()).await;
    eventually(SOON, "notifications are heard", async || subsystem.health().hears_other_processes).await;
    let pool = postgres.database.pool().clone();
    let flood = tokio::spawn(async move {
        // Each has a text of its own, or the server would send one for all.
        for round in 0..10 {
            let notify =
                "select count(pg_notify('postrider_wake', 'laws,other,' || $1 || n)) from generate_series(1, 10000) n";
            sqlx::query(notify).bind(format!("nobody_{round}_")).execute(&pool).await.unwrap();
        }
    });
    let mut deepest = 0;
    while !flood.is_finished() {
        let ids = postgres.record(wishes(3, None)).await;
        succeed(&postgres, &ids).await;
        deepest = subsystem.health().tree.actors.iter().map(|actor| actor.mailbox_depth).fold(deepest, usize::max);
    }
    flood.await.unwrap();
    assert!(deepest <= 20, "{deepest} messages wait");
    let ids = postgres.record(wishes(3, None)).await;
    succeed(&postgres, &ids).await;
    assert!(subsystem.health().tree.is_well());
    subsystem.shut_down().await;
}

/// What was logged at WARN and above.
#[derive(Clone, Default)]
struct Loud(Arc<Mutex<Vec<&'static str>>>);

impl<S: tracing::Subscriber> Layer<S> for Loud {
    fn on_event(&self, event: &tracing::Event<'_>, _context: Context<'_, S>) {
        if *event.metadata().level() <= tracing::Level::WARN {
            self.0.lock().unwrap().push(event.metadata().name());
        }
    }
}

#[tokio::test]
async fn a_database_that_is_away_for_seconds_restarts_nothing_and_is_said_once() {
    let postgres = postgres().await;
    let loud = Loud::default();
    let _logging = tracing_subscriber::registry().with(loud.clone()).set_default();
    let script = Script::new(|_| async { Outcome::Succeeded });
    let subsystem = subsystem(&postgres, &script, SubsystemConfig::default()).await;
    eventually(SOON, "notifications are heard", async || subsystem.health().hears_other_processes).await;
    postgres.set_reachable(false).await;
    eventually(SOON, "every channel notices", async || {
        let health = subsystem.health().tree;
        health.channels.iter().all(|channel| channel.state == ActorState::DatabaseUnreachable)
    })
    .await;
    tokio::time::sleep(Duration::from_secs(6)).await;
    let said = loud.0.lock().unwrap().clone();
    // Each claimer and the listener.
    assert!((1..=6).contains(&said.len()), "{said:?}");
    postgres.set_reachable(true).await;
    let ids = postgres.record(wishes(3, None)).await;
    succeed(&postgres, &ids).await;
    eventually(SOON, "all is well", async || subsystem.health().tree.is_well()).await;
    assert_eq!(restarts(&subsystem), 0);
    assert_eq!(loud.0.lock().unwrap().len(), said.len(), "nothing more at its end");
    subsystem.shut_down().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shutdown_under_load_finishes_what_is_under_way_and_a_successor_sends_the_rest_once_each() {
    let postgres = postgres().await;
    let mut all = wishes(200, None);
    for key in ["a", "b", "c", "d"] {
        all.extend(wishes(10, Some(key)));
    }
    let ids = postgres.record(all).await;
    let script = Script::new(|_| async {
        tokio::time::sleep(Duration::from_millis(30)).await;
        Outcome::Succeeded
    });
    let first = subsystem(&postgres, &script, with_slots(8)).await;
    eventually(SOON, "it is busy", async || script.log().len() >= 48).await;
    let (one, two) = tokio::join!(first.shut_down(), first.shut_down());
    assert_eq!((one, one.aborted_attempts), (two, 0));
    let begun = script.log();
    assert!(begun.len() < ids.len(), "there is a rest");
    for id in &ids {
        let look = postgres.look(*id).await.unwrap();
        let expected = if script.sent(*id) == 1 { (Status::Succeeded, 1) } else { (Status::Pending, 0) };
        assert_eq!((look.status, look.attempts), expected);
    }
    let leased = "select count(*) from postrider.deliveries where claim_token is not null";
    assert_eq!(sqlx::query_scalar::<_, i64>(leased).fetch_one(postgres.database.pool()).await.unwrap(), 0);
    let successor = subsystem(&postgres, &script, with_slots(8)).await;
    succeed(&postgres, &ids).await;
    assert!(ids.iter().all(|id| script.sent(*id) == 1), "none was sent twice");
    successor.shut_down().await;
}
