//! Poolers whose sessions do not last are refused, every time; nothing else ever is.

use std::time::Duration;

use postrider::pooler::{PoolerError, SessionError, connect_to_session};
use postrider::{SetupError, Subsystem, SubsystemConfig};
use sqlx::Connection;
use sqlx::postgres::PgConnectOptions;

use crate::bouncer::{Bouncer, Mode, Settings};
use crate::channel::Telling;
use crate::load::load;
use crate::support;

const TIMES: usize = 20;

async fn is_refused_every_time(options: &PgConnectOptions, when: &str) {
    for time in 0..TIMES {
        let spawned =
            Subsystem::spawn(options.clone(), Telling::default().channels(), SubsystemConfig::default()).await;
        let refused = matches!(spawned, Err(SetupError::Pooler(PoolerError::SharedSessions)));
        assert!(refused, "{when}, time {time}: {spawned:?}");
    }
}

async fn is_refused(settings: Settings) {
    let database = support::database().await;
    let bouncer = Bouncer::start(&database, &settings).await;
    let options = bouncer.options(&database);
    is_refused_every_time(&options, "cold").await;
    for clients in [1, 3, 12] {
        let load = load(&options, settings.mode, clients);
        tokio::time::sleep(Duration::from_millis(50)).await;
        is_refused_every_time(&options, &format!("under the load of {clients} clients")).await;
        drop(load);
    }
    is_refused_every_time(&options, "idle, with backends at hand").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_pool_of_one_backend_is_refused_every_time() {
    is_refused(Settings::new(Mode::Transaction, 1)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_pool_of_five_backends_is_refused_every_time() {
    is_refused(Settings::new(Mode::Transaction, 5)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_pool_that_lends_in_turn_is_refused_every_time() {
    for size in [2, 5] {
        let more = "server_round_robin = 1\nignore_startup_parameters = extra_float_digits,options";
        is_refused(Settings { more, ..Settings::new(Mode::Transaction, size) }).await;
    }
}

/// Which takes what one session left out of sight of the next.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_pool_that_resets_every_backend_is_refused_every_time() {
    for size in [1, 5] {
        let more = "server_reset_query_always = 1";
        is_refused(Settings { more, ..Settings::new(Mode::Transaction, size) }).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_statement_pool_is_refused_every_time() {
    for size in [1, 5] {
        is_refused(Settings::new(Mode::Statement, size)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_up_parameter_that_a_pooler_refuses_is_named() {
    let database = support::database().await;
    for mode in [Mode::Session, Mode::Transaction] {
        let bouncer = Bouncer::start(&database, &Settings::new(mode, 5)).await;
        let options = bouncer.options(&database).options([("geqo", "off")]);
        let refused = connect_to_session(&options).await;
        let Err(SessionError::Pooler(PoolerError::Parameter { parameter })) = refused else { panic!("{refused:?}") };
        assert_eq!(parameter, "options");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_pool_without_a_second_backend_is_refused_in_bounded_time() {
    let database = support::database().await;
    let bouncer = Bouncer::start(&database, &Settings::new(Mode::Session, 1)).await;
    let options = bouncer.options(&database);
    let spawn = Subsystem::spawn(options, Telling::default().channels(), SubsystemConfig::default());
    let spawned = tokio::time::timeout(Duration::from_secs(15), spawn).await.unwrap();
    assert!(matches!(spawned, Err(SetupError::NoSecondConnection(_))), "{spawned:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_direct_connection_is_never_refused() {
    let database = support::database().await;
    for clients in [0, 24] {
        let _load = load(&database.options(), Mode::Session, clients);
        for _ in 0..50 {
            connect_to_session(&database.options()).await.unwrap().close().await.unwrap();
        }
    }
}
