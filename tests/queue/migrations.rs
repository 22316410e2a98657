//! Migrating, and refusing what does not fit.

use std::fs;
use std::path::Path;
use std::time::Duration;

use postrider::queue::{self, Listing, MigrateError, PgQueue, SchemaError};
use postrider_actors::laws::{channel, wishes};
use postrider_actors::{Ended, Lease, Queue, Reason, Retention, Search, Settled, Status, Verdict};
use sqlx::{AssertSqlSafe, Connection, PgConnection};

use crate::harness::{Wished, operator, postgres, recorder};
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

/// Old statements under a newer schema: prepared before a column is added, run after it, by the same sessions.
#[tokio::test]
async fn c41_statements_prepared_before_an_additive_migration_run_after_it() {
    let postgres = postgres().await;
    let pool = queue::pool_options(Duration::from_secs(5)).max_connections(1);
    let pool = pool.connect_lazy_with(queue::connect_options(postgres.database.options()));
    let actors = PgQueue::new(pool);
    let mut host = postgres.database.connect().await;
    for round in 0..2 {
        every_statement(&actors, &mut host).await;
        if round == 0 {
            for table in ["events", "deliveries", "delivery_orderings", "delivery_releases", "compatibility"] {
                let add = format!("alter table postrider.{table} add column of_a_newer_release text");
                sqlx::query(AssertSqlSafe(add)).execute(postgres.database.pool()).await.unwrap();
            }
        }
    }
}

/// Everything that the queue's actors, a host and operators do.
async fn every_statement(actors: &PgQueue, host: &mut PgConnection) {
    let claim = async || {
        actors.claim(&channel().name, 1.try_into().unwrap(), Duration::from_secs(60), Search::All).await.unwrap()
    };
    let record = async |lease: &Lease, verdict| {
        let (delivery, token, ordered) = (lease.delivery.id, lease.token, lease.delivery.ordering_key.is_some());
        let ended = Ended { delivery, token, ordered, verdict, effect: None };
        let recorded = actors.record(&channel(), &[ended]).await.unwrap();
        assert!(matches!(recorded.settled[0], Settled::Recorded(_)));
    };
    let mut deliveries = wishes(3, Some("key"));
    deliveries.extend(wishes(1, None));
    let ids = recorder().record(host, &Wished(deliveries)).await.unwrap().deliveries;
    for _ in 0..2 {
        let lease = claim().await.remove(0);
        actors.give_back(&channel().name, &[(lease.delivery.id, lease.token)]).await.unwrap();
        let lease = claim().await.remove(0);
        record(&lease, Verdict::Succeeded).await;
    }
    let lease = claim().await.remove(0);
    record(&lease, Verdict::Failed { reason: Reason::Connection }).await;
    queue::retry(host, lease.delivery.id, &operator()).await.unwrap();
    queue::cancel(host, lease.delivery.id, &operator()).await.unwrap();
    let lease = claim().await.remove(0);
    record(&lease, Verdict::Failed { reason: Reason::Connection }).await;
    for id in ids {
        queue::get(host, id).await.unwrap().unwrap();
    }
    for status in [None, Some(Status::Failed)] {
        for name in [None, Some(channel().name)] {
            let listed = queue::list(host, &Listing { status, channel: name, limit: 10 }).await.unwrap();
            assert!(!listed.is_empty());
        }
    }
    actors.count_pending(&[channel().name]).await.unwrap();
    let at_once = Retention { succeeded: Duration::ZERO, failed: Duration::ZERO };
    let cleaned = actors.clean_up(&at_once).await.unwrap();
    assert_eq!(cleaned.deleted + cleaned.abandoned_keys, 4);
    postrider::check_schema(host).await.unwrap();
}

#[tokio::test]
async fn c41_all_migrations_run_fresh_in_one_transaction() {
    let database = support::empty_database().await;
    let mut transaction = database.pool().begin().await.unwrap();
    sqlx::raw_sql("create schema postrider").execute(&mut *transaction).await.unwrap();
    for folder in ["queue", "identity"] {
        for (_, text) in sources(&format!("migrations/{folder}")) {
            sqlx::raw_sql(AssertSqlSafe(text)).execute(&mut *transaction).await.unwrap();
        }
    }
    transaction.commit().await.unwrap();
    let there = "select count(*) from pg_tables where schemaname = 'postrider'";
    let fresh: i64 = sqlx::query_scalar(there).fetch_one(database.pool()).await.unwrap();
    let migrated: i64 = sqlx::query_scalar(there).fetch_one(support::database().await.pool()).await.unwrap();
    assert_eq!(fresh, migrated - 2, "all but the two tables that remember what was applied");
}

/// Files below a folder of the repository, in the order of their names, with their text.
fn sources(folder: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false => found.push((path.display().to_string(), fs::read_to_string(&path).unwrap())),
            }
        }
    }
    found.sort();
    assert!(!found.is_empty());
    found
}

/// But for two: a row of a sub-select that names its columns, and a row variable of a trigger, which PostgreSQL fits to
/// the table anew.
#[test]
fn c41_every_statement_names_its_columns() {
    let all = |word: &str| word.trim_start_matches('"').split(',').any(|one| one == "*" || one.ends_with(".*"));
    let mut starred = Vec::new();
    for (path, text) in ["src", "migrations"].into_iter().flat_map(sources) {
        let words: Vec<String> = text.split_whitespace().map(str::to_lowercase).collect();
        let here = words.windows(2).filter(|pair| pair[0].ends_with("select") || pair[0].ends_with("returning"));
        starred.extend(here.filter(|pair| all(&pair[1])).map(|pair| (path.clone(), pair[1].clone())));
    }
    let [(list, "d.*"), (trigger, "s.*")] = [0, 1].map(|nth| (starred[nth].0.as_str(), starred[nth].1.as_str())) else {
        panic!("{starred:?}");
    };
    assert!(list.ends_with("src/queue/list.rs") && trigger.ends_with("identity/0001_reference_domain.sql"));
    assert_eq!(starred.len(), 2, "{starred:?}");
}

/// Only what is told to a receiver (`iat`) and what a receiver says as a date (Retry-After) read this host's clock:
/// one that is wrong changes no lease and no time in the queue.
#[test]
fn c36_nothing_that_decides_over_a_lease_or_a_time_in_the_queue_reads_this_hosts_clock() {
    let clocks = ["Utc::now", "Local::now", "SystemTime::now", "Zoned::now", "OffsetDateTime::now"];
    let readers: Vec<_> = ["src/queue", "src/channels", "src/outbound", "src/identity", "actors/src"]
        .into_iter()
        .flat_map(sources)
        .filter(|(_, text)| clocks.iter().any(|clock| text.contains(clock)))
        .map(|(path, _)| path)
        .collect();
    assert_eq!(readers.len(), 2, "{readers:?}");
    assert!(readers[0].ends_with("src/channels/backchannel_logout.rs"));
    assert!(readers[1].ends_with("src/outbound/reply.rs"));
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
