//! `postrider migrate`.

use std::time::Duration;

use crate::program::{Scratch, run};
use crate::support;

#[tokio::test]
async fn ten_migrate_an_empty_database_at_once() {
    let database = support::empty_database().await;
    let url = database.url();
    let mut running = tokio::task::JoinSet::new();
    for _ in 0..10 {
        let url = url.clone();
        running.spawn(async move { run(&["migrate", "--database-url", &url]).await });
    }
    while let Some(done) = running.join_next().await {
        let said = done.unwrap().ok();
        assert!(said.contains("is at queue 6, identity 3"), "{said}");
    }
    postrider::check_schema(&mut database.connect().await).await.unwrap();
    let left = "select count(*) from pg_stat_activity where datname = $1 and application_name = 'postrider'";
    // A session that has been told goodbye is listed for a moment longer.
    support::eventually(Duration::from_secs(10), "programs that have ended leave no connection", async || {
        let left: i64 = sqlx::query_scalar(left).bind(database.name()).fetch_one(database.pool()).await.unwrap();
        left == 0
    })
    .await;
}

#[tokio::test]
async fn a_schema_newer_than_the_program_is_refused_by_every_command() {
    let database = support::database().await;
    // A newer release that took something away which this one needs.
    let newer = "update postrider.queue_migrations set version = 999 where version = 6; update postrider.compatibility set oldest_migration = 999";
    sqlx::raw_sql(newer).execute(database.pool()).await.unwrap();
    let scratch = Scratch::new();
    let key = crate::program::key(&scratch).await;
    let serve = ["serve", "--issuer", "https://id.example", "--signing-key", &key, "--listen", "127.0.0.1:0"];
    let migrating = [serve.as_slice(), &["--migrate"]].concat();
    for command in [&["migrate"][..], &["deliveries", "list"], &serve, &migrating] {
        let done = run(&[command, &["--database-url", &database.url()]].concat()).await;
        done.failed(2, &["newer release", "999"]);
    }
}

/// While a newer release replaces this one, replicas of this one may still start; they just do not migrate.
#[tokio::test]
async fn a_schema_that_a_newer_release_only_added_to_is_worked_with_and_not_migrated() {
    let database = support::database().await;
    sqlx::query("update postrider.queue_migrations set version = 999 where version = 6")
        .execute(database.pool())
        .await
        .unwrap();
    run(&["deliveries", "list", "--database-url", &database.url()]).await.ok();
    run(&["migrate", "--database-url", &database.url()]).await.failed(2, &["newer release", "999"]);
}

#[tokio::test]
async fn too_old_a_server_is_refused_and_nothing_is_made_in_it() {
    let database = support::empty_database().await;
    // What the server says of its version, found before PostgreSQL's own function.
    for statement in [
        "create schema old".to_owned(),
        "create function old.current_setting(name text) returns text language sql as
         $$ select case name when 'server_version_num' then '130004' else '13.4' end $$"
            .to_owned(),
        format!("alter database {} set search_path = old, pg_catalog", database.name()),
    ] {
        sqlx::query(sqlx::AssertSqlSafe(statement)).execute(database.pool()).await.unwrap();
    }
    let done = run(&["migrate", "--database-url", &database.url()]).await;
    done.failed(2, &["PostgreSQL 13.4 is too old: 14 is the oldest supported"]);
    assert!(!has_schema(&database).await);
}

/// Whether anything of Postrider's is there.
pub async fn has_schema(database: &support::TestDatabase) -> bool {
    let found = "select exists (select from pg_namespace where nspname like 'postrider%')";
    sqlx::query_scalar(found).fetch_one(database.pool()).await.unwrap()
}
