//! Migrations, embedded; and whether this release and a database fit each other.

use sqlx::PgConnection;
use sqlx::migrate::{MigrateError as SqlxMigrateError, Migrator};

static QUEUE: Migrator = sqlx::migrate!("migrations/queue");
static IDENTITY: Migrator = sqlx::migrate!("migrations/identity");

const QUEUE_TABLE: &str = "postrider.queue_migrations";
const IDENTITY_TABLE: &str = "postrider.identity_migrations";

/// PostgreSQL 14: the oldest server that is supported, as `server_version_num` counts.
const OLDEST_SERVER: i32 = 140_000;

/// The oldest major version of PostgreSQL that is supported.
pub const fn oldest_supported_server() -> i32 {
    OLDEST_SERVER / 10_000
}

/// A database that this release cannot work with.
#[derive(Debug, thiserror::Error)]
pub enum SchemaError {
    /// Too old a server.
    #[error("PostgreSQL {found} is too old: 14 is the oldest supported")]
    ServerTooOld {
        /// Its version, as the server says it.
        found: String,
    },
    /// A newer release has migrated it.
    #[error(
        "the database was migrated by a newer release of postrider (to {table} {found}, this release knows {known}): use that release"
    )]
    Newer {
        /// Which list of migrations.
        table: &'static str,
        /// The newest migration applied.
        found: i64,
        /// The newest that this release has.
        known: i64,
    },
    /// It has not been migrated, or only by an older release.
    #[error(
        "the database is not migrated ({table} is at {found}, this release needs {needed}): run `postrider migrate`"
    )]
    Older {
        /// Which list of migrations.
        table: &'static str,
        /// The newest migration applied; 0: none.
        found: i64,
        /// The newest that this release has.
        needed: i64,
    },
    /// The database could not be asked.
    #[error("the database could not be asked for its version")]
    Database(#[from] sqlx::Error),
}

/// Migrating failed; what was applied before the failure stays, each migration whole.
#[derive(Debug, thiserror::Error)]
pub enum MigrateError {
    /// This release may not migrate this database.
    #[error(transparent)]
    Schema(#[from] SchemaError),
    /// A migration failed.
    #[error("migrating the database failed")]
    Migration(#[from] SqlxMigrateError),
}

/// Brings the schema `postrider` up to this release: the queue and the reference domain, in tables of their own, never
/// touching a host's migrations. Under an advisory lock, so any number of replicas may start at once. Give it a
/// connection of its own and close it afterwards: after an error the lock stays with the connection.
///
/// # Errors
/// A server older than PostgreSQL 14, a schema newer than this release, or a migration that failed.
pub async fn migrate(connection: &mut PgConnection) -> Result<(), MigrateError> {
    refuse_old_server(connection).await?;
    for (migrator, table) in [(&QUEUE, QUEUE_TABLE), (&IDENTITY, IDENTITY_TABLE)] {
        refuse_newer(migrator, table, applied(connection, table).await?)?;
        in_own_table(migrator, table).run_direct(None, connection, false).await?;
    }
    Ok(())
}

fn in_own_table(migrator: &'static Migrator, table: &'static str) -> Migrator {
    let mut migrator = Migrator { migrations: migrator.migrations.clone(), ..Migrator::DEFAULT };
    migrator.create_schema("postrider");
    migrator.dangerous_set_table_name(table);
    migrator
}

/// Checks that the database is what this release needs, changing nothing.
///
/// # Errors
/// What does not fit.
pub async fn check_schema(connection: &mut PgConnection) -> Result<(), SchemaError> {
    refuse_old_server(connection).await?;
    for (migrator, table) in [(&QUEUE, QUEUE_TABLE), (&IDENTITY, IDENTITY_TABLE)] {
        let found = applied(connection, table).await?;
        refuse_newer(migrator, table, found)?;
        let needed = newest(migrator);
        if found < needed {
            return Err(SchemaError::Older { table, found, needed });
        }
    }
    Ok(())
}

async fn refuse_old_server(connection: &mut PgConnection) -> Result<(), SchemaError> {
    let (number, found): (i32, String) =
        sqlx::query_as("select current_setting('server_version_num')::int, current_setting('server_version')")
            .fetch_one(connection)
            .await?;
    if number < OLDEST_SERVER { Err(SchemaError::ServerTooOld { found }) } else { Ok(()) }
}

fn newest(migrator: &Migrator) -> i64 {
    migrator.iter().map(|migration| migration.version).max().unwrap_or(0)
}

fn refuse_newer(migrator: &Migrator, table: &'static str, found: i64) -> Result<(), SchemaError> {
    let known = newest(migrator);
    if found > known { Err(SchemaError::Newer { table, found, known }) } else { Ok(()) }
}

async fn applied(connection: &mut PgConnection, table: &'static str) -> Result<i64, SchemaError> {
    let exists: bool =
        sqlx::query_scalar("select to_regclass($1) is not null").bind(table).fetch_one(&mut *connection).await?;
    if !exists {
        return Ok(0);
    }
    let query = if table == QUEUE_TABLE {
        "select coalesce(max(version), 0) from postrider.queue_migrations"
    } else {
        "select coalesce(max(version), 0) from postrider.identity_migrations"
    };
    Ok(sqlx::query_scalar(query).fetch_one(connection).await?)
}
