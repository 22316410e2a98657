//! Migrating, and refusing what does not fit.

use postrider::queue::{MigrateError, SchemaError};
use sqlx::Connection;

use crate::support;

#[tokio::test]
async fn ten_replicas_may_migrate_at_once() {
    let database = support::empty_database().await;
    let replicas = (0..10).map(|_| {
        let options = database.options();
        tokio::spawn(async move {
            let mut connection = sqlx::PgConnection::connect_with(&options).await.unwrap();
            postrider::migrate(&mut connection).await.unwrap();
            connection.close().await.unwrap();
        })
    });
    for replica in replicas.collect::<Vec<_>>() {
        replica.await.unwrap();
    }
    let mut connection = database.connect().await;
    postrider::check_schema(&mut connection).await.unwrap();
    let applied: i64 =
        sqlx::query_scalar("select count(*) from postrider.queue_migrations").fetch_one(&mut connection).await.unwrap();
    assert!(applied >= 1);
}

#[tokio::test]
async fn a_database_that_was_not_migrated_is_refused_with_what_to_run() {
    let database = support::empty_database().await;
    let refused = postrider::check_schema(&mut database.connect().await).await.unwrap_err();
    assert!(matches!(refused, SchemaError::Older { found: 0, .. }));
    assert!(refused.to_string().contains("postrider migrate"), "{refused}");
}

#[tokio::test]
async fn a_schema_newer_than_this_release_is_refused_and_left_alone() {
    let database = support::database().await;
    let mut connection = database.connect().await;
    let newer = "insert into postrider.queue_migrations (version, description, success, checksum, execution_time)
                 values (99999, 'of a newer release', true, '', 0)";
    sqlx::query(newer).execute(&mut connection).await.unwrap();
    let refused = postrider::migrate(&mut connection).await.unwrap_err();
    assert!(matches!(refused, MigrateError::Schema(SchemaError::Newer { found: 99999, .. })));
    // What the newer release added, this one can live with: its replicas may start while they are being replaced.
    postrider::check_schema(&mut connection).await.unwrap();
    // Until a release takes something away.
    sqlx::query("update postrider.compatibility set oldest_migration = 99999").execute(&mut connection).await.unwrap();
    let refused = postrider::check_schema(&mut connection).await.unwrap_err();
    assert!(matches!(refused, SchemaError::Newer { found: 99999, .. }));
}

/// Old statements under a newer schema: prepared before a column is added, run after it (C41).
#[tokio::test]
async fn c41_statements_prepared_before_an_additive_migration_run_after_it() {
    use crate::harness::postgres;
    use postrider_actors::laws::{Harness, channel, wishes};
    use postrider_actors::{Ended, Queue, Verdict};

    let postgres = postgres().await;
    for round in 0..2 {
        let ids = postgres.record(wishes(1, Some("key"))).await;
        let slots = 1.try_into().unwrap();
        let lease =
            postgres.queue.claim(&channel().name, slots, std::time::Duration::from_secs(60)).await.unwrap().remove(0);
        let (delivery, token) = (lease.delivery.id, lease.token);
        let ended = Ended { delivery, token, ordered: true, verdict: Verdict::Succeeded, effect: None };
        let _ = postgres.queue.record(&channel(), &[ended]).await.unwrap();
        assert!(!postgres.retry(ids[0]).await && postgres.look(ids[0]).await.is_some());
        postgres.queue.clean_up(&Default::default()).await.unwrap();
        postgres.queue.count_pending(&[channel().name]).await.unwrap();
        if round == 0 {
            for table in ["events", "deliveries", "delivery_orderings", "delivery_releases"] {
                let add = format!("alter table postrider.{table} add column of_a_newer_release text");
                sqlx::query(sqlx::AssertSqlSafe(add)).execute(postgres.database.pool()).await.unwrap();
            }
        }
    }
}

/// The second migration, under a release that knows only the first, and while a host's transaction is open.
#[tokio::test]
async fn the_migration_for_audits_rewrites_nothing_holds_nobody_up_and_lets_an_older_release_go_on() {
    let database = support::empty_database().await;
    let first = include_str!("../../migrations/queue/0001_deliveries.sql");
    let second = include_str!("../../migrations/queue/0002_audit.sql");
    sqlx::raw_sql("create schema postrider").execute(database.pool()).await.unwrap();
    sqlx::raw_sql(first).execute(database.pool()).await.unwrap();
    let older = "insert into postrider.delivery_releases (channel, ordering_key) values ('laws', 'key')";
    let host = "insert into postrider.delivery_orderings values ('laws', 'key', 1, 1)
                    on conflict (channel, ordering_key) do update set last_ordinal = 2";
    sqlx::query(older).execute(database.pool()).await.unwrap();
    sqlx::query(host).execute(database.pool()).await.unwrap();
    let file = "select pg_relation_filenode('postrider.delivery_orderings')::bigint";
    let before: i64 = sqlx::query_scalar(file).fetch_one(database.pool()).await.unwrap();

    let mut open = database.pool().begin().await.unwrap();
    sqlx::query(host).execute(&mut *open).await.unwrap();
    let mut migrating = database.pool().begin().await.unwrap();
    let given_up = sqlx::raw_sql(second).execute(&mut *migrating).await.unwrap_err();
    assert_eq!(given_up.as_database_error().and_then(|error| error.code()).as_deref(), Some("55P03"));
    migrating.rollback().await.unwrap();
    open.commit().await.unwrap();

    let mut migrating = database.pool().begin().await.unwrap();
    sqlx::raw_sql(second).execute(&mut *migrating).await.unwrap();
    migrating.commit().await.unwrap();
    assert_eq!(sqlx::query_scalar::<_, i64>(file).fetch_one(database.pool()).await.unwrap(), before, "rewritten");
    sqlx::query(older).execute(database.pool()).await.unwrap();
    sqlx::query(host).execute(database.pool()).await.unwrap();
}
