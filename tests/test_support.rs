//! The tests' own support keeps its promises.
#![allow(clippy::unwrap_used)]

mod support;

use std::time::Duration;

use sqlx::{Connection, PgConnection};

async fn exists(name: &str, observer: &support::TestDatabase) -> bool {
    let row = sqlx::query("select from pg_database where datname = $1").bind(name.to_owned());
    row.fetch_optional(observer.pool()).await.unwrap().is_some()
}

#[tokio::test]
async fn each_test_has_a_database_of_its_own_that_goes_with_it() {
    let (kept, dropped, closed) = tokio::join!(support::database(), support::database(), support::empty_database());
    sqlx::query("create table own (id int)").execute(dropped.pool()).await.unwrap();
    let tables = sqlx::query("select from pg_tables where tablename = 'own'").fetch_all(kept.pool()).await.unwrap();
    assert!(tables.is_empty());

    let _still_connected = dropped.connect().await;
    let (first, second) = (dropped.name().to_owned(), closed.name().to_owned());
    assert!(exists(&first, &kept).await && exists(&second, &kept).await);
    drop(dropped);
    closed.close().await;
    assert!(!exists(&first, &kept).await && !exists(&second, &kept).await);
}

#[tokio::test]
async fn the_url_leads_to_the_same_database() {
    let database = support::database().await;
    let mut connection = PgConnection::connect(&database.url()).await.unwrap();
    let name: String = sqlx::query_scalar("select current_database()").fetch_one(&mut connection).await.unwrap();
    assert_eq!(name, database.name());
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "the moon is full")]
async fn waiting_for_what_does_not_happen_ends_at_the_deadline() {
    support::eventually(Duration::from_millis(50), "the moon is full", async || false).await;
}
