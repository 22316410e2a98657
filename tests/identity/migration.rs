//! The migration for e-mail, on a database that an older release works with.

use sqlx::PgPool;

use crate::support;

const FIRST: &str = include_str!("../../migrations/identity/0001_reference_domain.sql");
const MAIL: &str = include_str!("../../migrations/identity/0002_mail.sql");

async fn older() -> support::TestDatabase {
    let database = support::empty_database().await;
    sqlx::raw_sql(FIRST).execute(database.pool()).await.unwrap();
    older_release(database.pool(), "before").await;
    database
}

async fn migrate(pool: &PgPool) -> Result<(), sqlx::Error> {
    let mut migrating = pool.begin().await?;
    sqlx::raw_sql(MAIL).execute(&mut *migrating).await?;
    migrating.commit().await
}

/// What a release that knows only the first migration does.
async fn older_release(pool: &PgPool, handle: &str) {
    let mut connection = pool.acquire().await.unwrap();
    let id = uuid::Uuid::now_v7();
    for statement in [
        "insert into postrider_identity.accounts (id, handle) values ($1, $2)",
        "insert into postrider_identity.sessions (id, account_id) select $1, id from postrider_identity.accounts where handle = $2",
        "update postrider_identity.sessions set revoked_at = statement_timestamp(), revoked_by = 'sign_out' where id = $1 and $2 <> ''",
        "delete from postrider_identity.sessions where id = $1 and $2 <> ''",
    ] {
        let done = sqlx::query(statement).bind(id).bind(handle).execute(&mut *connection).await.unwrap();
        assert_eq!(done.rows_affected(), 1, "{statement}");
    }
}

#[tokio::test]
async fn the_migration_for_mail_keeps_what_is_there_and_lets_an_older_release_go_on() {
    let database = older().await;
    migrate(database.pool()).await.unwrap();
    older_release(database.pool(), "after").await;
    let accounts: Vec<(String, String)> =
        sqlx::query_as("select handle, state from postrider_identity.accounts order by id")
            .fetch_all(database.pool())
            .await
            .unwrap();
    assert_eq!(accounts, [("before".into(), "active".into()), ("after".into(), "active".into())]);
    let state = "update postrider_identity.accounts set state = 'closed' where handle = 'before'";
    sqlx::query(state).execute(database.pool()).await.unwrap();
    let none_such = "update postrider_identity.accounts set state = 'asleep' where handle = 'before'";
    assert!(sqlx::query(none_such).execute(database.pool()).await.is_err());
    sqlx::query("delete from postrider_identity.accounts where handle = 'before'")
        .execute(database.pool())
        .await
        .unwrap();
}

/// Its accounts are held by a transaction that does not end: it gives up, and succeeds when run again.
#[tokio::test]
async fn the_migration_for_mail_gives_up_rather_than_hold_up_hosts() {
    let database = older().await;
    let mut open = database.pool().begin().await.unwrap();
    sqlx::query("update postrider_identity.accounts set handle = 'held'").execute(&mut *open).await.unwrap();
    let given_up = migrate(database.pool()).await.unwrap_err();
    assert_eq!(given_up.as_database_error().and_then(|error| error.code()).as_deref(), Some("55P03"));
    open.commit().await.unwrap();
    migrate(database.pool()).await.unwrap();
}

/// A purge looks through every table that refers to what it deletes.
#[tokio::test]
async fn every_foreign_key_of_the_domain_has_an_index_that_begins_with_it() {
    let database = support::database().await;
    let bare: Vec<String> = sqlx::query_scalar(
        "select c.conrelid::regclass || '.' || a.attname
           from pg_constraint c
           join pg_attribute a on a.attrelid = c.conrelid and a.attnum = c.conkey[1]
          where c.contype = 'f' and c.connamespace = 'postrider_identity'::regnamespace
            and not exists (
                select from pg_index i
                 where i.indrelid = c.conrelid and i.indkey[0] = c.conkey[1]
                   and (i.indpred is null or pg_get_expr(i.indpred, i.indrelid) = format('(%I IS NOT NULL)', a.attname)))
          order by 1",
    )
    .fetch_all(database.pool())
    .await
    .unwrap();
    // Clients are few, and deleted by hand.
    let known =
        ["postrider_identity.oidc_authorization_codes.client_id", "postrider_identity.oidc_session_clients.client_id"];
    assert_eq!(bare, known);
}

/// RFC 9562 5.7: the time in front, then version and variant.
#[tokio::test]
async fn ids_that_a_statement_makes_are_uuids_of_version_7() {
    let database = support::database().await;
    let ids: Vec<(uuid::Uuid, i64)> = sqlx::query_as(
        "select postrider_identity.uuid_v7(), floor(extract(epoch from clock_timestamp()) * 1000)::bigint
           from generate_series(1, 100)",
    )
    .fetch_all(database.pool())
    .await
    .unwrap();
    let mut distinct = std::collections::HashSet::new();
    for (id, now) in ids {
        assert_eq!((id.get_version_num(), id.get_variant()), (7, uuid::Variant::RFC4122), "{id}");
        let millis = i64::try_from(id.as_u128() >> 80).unwrap();
        assert!((now - 1000..=now).contains(&millis), "{millis} at {now}");
        assert!(distinct.insert(id));
    }
}
