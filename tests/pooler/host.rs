//! `record` on a host's connections, as docs/poolers.md says of it.

use postrider::{RecordError, Recorder};
use sqlx::postgres::PgPoolOptions;
use sqlx::{ConnectOptions, Connection, PgConnection, PgPool};
use tokio::task::JoinSet;

use crate::bouncer::{Bouncer, Mode, Settings};
use crate::channel::{Happened, Telling};
use crate::support;

const HOSTS: usize = 8;
const EACH: usize = 50;

async fn record(connection: &mut PgConnection) -> Result<(), RecordError> {
    let mut transaction = connection.begin().await?;
    Recorder::new(Telling::default().channels()).record(&mut transaction, &Happened).await?;
    transaction.commit().await?;
    Ok(())
}

/// How many deliveries were recorded, and how many recordings failed.
async fn record_at_once(pool: &PgPool) -> (usize, usize) {
    let mut tasks = JoinSet::new();
    for _ in 0..HOSTS {
        let pool = pool.clone();
        tasks.spawn(async move {
            let mut failed = 0;
            for _ in 0..EACH {
                let mut connection = pool.acquire().await.unwrap();
                failed += usize::from(record(&mut connection).await.is_err());
            }
            failed
        });
    }
    let failed = tasks.join_all().await.iter().sum::<usize>();
    (HOSTS * EACH - failed, failed)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hosts_record_through_a_session_pool() {
    let database = support::database().await;
    let bouncer = Bouncer::start(&database, &Settings::new(Mode::Session, 10)).await;
    let options = bouncer.options(&database).extra_float_digits(None);
    let pool = PgPoolOptions::new().max_connections(8).connect_lazy_with(options);
    assert_eq!(record_at_once(&pool).await, (HOSTS * EACH, 0));
    let deliveries: i64 =
        sqlx::query_scalar("select count(*) from postrider.deliveries").fetch_one(database.pool()).await.unwrap();
    assert_eq!(usize::try_from(deliveries).unwrap(), HOSTS * EACH);
}

/// sqlx names statements by their number in a connection, so two connections that are lent one backend collide, inside
/// a transaction or not; without a cache it names them all the same. Should this test fail one day, the page may allow
/// more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hosts_cannot_record_through_a_transaction_pool_with_sqlx_statement_cache_or_not() {
    for capacity in [100, 0] {
        let database = support::database().await;
        let bouncer = Bouncer::start(&database, &Settings::new(Mode::Transaction, 1)).await;
        let options = bouncer.options(&database).extra_float_digits(None).statement_cache_capacity(capacity);
        let (mut one, mut other) = (options.connect().await.unwrap(), options.connect().await.unwrap());
        record(&mut one).await.unwrap();
        let Err(RecordError::Database(error)) = record(&mut other).await else { panic!("it was recorded") };
        let code = error.as_database_error().and_then(|error| error.code()).map(|code| code.into_owned());
        assert_eq!(code.as_deref(), Some("42P05"), "a prepared statement of this name exists: {error}");
    }
}
