//! `postrider migrate`.

use sqlx::Connection;

use super::arguments::Global;
use super::connection::{Patience, connect, schema_failure};
use super::database::Database;
use super::failure::{Exit, Failure, exit_of};
use crate::queue::MigrateError;

/// Migrates over a connection that is closed afterwards.
pub(super) async fn run(global: &Global) -> Result<String, Failure> {
    let database = Database::existing(global).await?;
    let migrated = migrate(&database, global).await;
    let name = database.shown();
    database.close().await?;
    let At { queue, identity } = migrated?;
    let release = env!("CARGO_PKG_VERSION");
    Ok(format!("{name} is at queue {queue}, identity {identity}, as postrider {release} needs it\n"))
}

/// The newest migrations that a database has.
#[derive(Debug, sqlx::FromRow)]
pub(super) struct At {
    queue: i64,
    identity: i64,
}

pub(super) async fn migrate(database: &Database, global: &Global) -> Result<At, Failure> {
    let mut connection = connect(database, global, Patience::UntilTimeout).await?;
    crate::migrate(&mut connection).await.map_err(|error| match &error {
        MigrateError::Schema(error) => schema_failure(database, error),
        MigrateError::Migration(source) => {
            let exit = match source {
                sqlx::migrate::MigrateError::Execute(error) => exit_of(error),
                _ => Exit::Failed,
            };
            Failure::new(exit, format!("cannot migrate {}", database.shown())).because(&error)
        }
    })?;
    let at = sqlx::query_as(
        "select (select max(version) from postrider.queue_migrations) as queue,
                (select max(version) from postrider.identity_migrations) as identity",
    )
    .fetch_one(&mut connection)
    .await
    .map_err(|error| Failure::new(exit_of(&error), "the database did not tell what it is at").because(&error))?;
    // Closed either way; what was migrated is committed.
    let _ = connection.close().await;
    Ok(at)
}
