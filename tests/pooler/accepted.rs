//! Through a pooler in session mode all works as it does directly, whatever its other settings are.

use std::time::Duration;

use postrider::pooler::connect_to_session;
use postrider::{Recorder, Subsystem, SubsystemConfig};
use postrider_actors::{DeliveryId, EngineConfig};
use sqlx::{Connection, PgConnection};

use crate::bouncer::{Bouncer, Mode, Settings};
use crate::channel::{Happened, Telling};
use crate::load::load;
use crate::support::{self, TestDatabase, eventually};

const SOON: Duration = Duration::from_secs(10);

/// Polls so rarely that only a wake-up can be what was seen.
fn rarely_polling() -> SubsystemConfig {
    let engine = EngineConfig { poll_interval: Duration::from_secs(3600), ..EngineConfig::default() };
    SubsystemConfig { engine, ..SubsystemConfig::default() }
}

/// Records in a transaction of a host that is connected directly.
async fn record(recorder: &Recorder, database: &TestDatabase) -> DeliveryId {
    let mut transaction = database.pool().begin().await.unwrap();
    let recorded = recorder.record(&mut transaction, &Happened).await.unwrap();
    transaction.commit().await.unwrap();
    let id = recorded.deliveries[0];
    recorded.committed();
    id
}

async fn is_delivered(database: &TestDatabase, delivery: DeliveryId) {
    eventually(SOON, "it is delivered", async || {
        let status = sqlx::query_scalar("select status from postrider.deliveries where id = $1");
        let status: String = status.bind(delivery.as_uuid()).fetch_one(database.pool()).await.unwrap();
        status == "succeeded"
    })
    .await;
}

async fn delivers_and_wakes_up(settings: Settings) {
    let database = support::database().await;
    let bouncer = Bouncer::start(&database, &settings).await;
    let options = bouncer.options(&database);
    let telling = Telling::default();
    let subsystem = Subsystem::spawn(options, telling.channels(), rarely_polling()).await.unwrap();
    eventually(SOON, "notifications are heard", async || subsystem.health().hears_other_processes).await;

    let woken_here = record(&subsystem.recorder(), &database).await;
    is_delivered(&database, woken_here).await;
    // As another process does it: nothing in this one knows of the commit but by notification.
    let elsewhere = record(&Recorder::new(telling.channels()), &database).await;
    sqlx::query("select pg_notify('postrider_wake', 'telling')").execute(database.pool()).await.unwrap();
    is_delivered(&database, elsewhere).await;

    let in_force = ["5s", "5s", "read committed", "force_custom_plan", "off"].map(str::to_owned);
    let seen: Vec<_> = telling.settings.lock().unwrap().iter().cloned().collect();
    assert_eq!(seen, [in_force], "what the actors' sessions are set to");
    subsystem.shut_down().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_delivery_goes_through_a_session_pool_and_its_settings_and_wake_ups_with_it() {
    delivers_and_wakes_up(Settings::new(Mode::Session, 5)).await;
}

/// What start-up options would have set is ignored by such a pool, without a word.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_pool_that_ignores_start_up_options_is_as_good() {
    let more = "ignore_startup_parameters = extra_float_digits,options\nserver_round_robin = 1";
    delivers_and_wakes_up(Settings { more, ..Settings::new(Mode::Session, 20) }).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_pool_is_never_refused() {
    let database = support::database().await;
    let bouncer = Bouncer::start(&database, &Settings::new(Mode::Session, 20)).await;
    let options = bouncer.options(&database);
    for clients in [0, 12] {
        let _load = load(&options, Mode::Session, clients);
        for _ in 0..20 {
            connect_to_session(&options).await.unwrap().close().await.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_is_migrated_through_a_session_pool() {
    let database = support::empty_database().await;
    let bouncer = Bouncer::start(&database, &Settings::new(Mode::Session, 5)).await;
    let mut connection: PgConnection = connect_to_session(&bouncer.options(&database)).await.unwrap();
    postrider::migrate(&mut connection).await.unwrap();
    postrider::check_schema(&mut connection).await.unwrap();
}
