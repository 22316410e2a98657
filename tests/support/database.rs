//! A database for one test.

use std::thread;

use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{ConnectOptions, Connection, PgConnection, PgPool};
use uuid::Uuid;

use super::cluster::{administration, execute, template, url};

/// A migrated database for one test, which is dropped with this value, whoever is still connected.
pub async fn database() -> TestDatabase {
    TestDatabase::create(template().await).await
}

/// The same without Postrider's migrations: for tests of the migrations themselves.
pub async fn empty_database() -> TestDatabase {
    TestDatabase::create("template0").await
}

/// See [`database`].
pub struct TestDatabase {
    name: String,
    pool: PgPool,
    dropped: bool,
}

impl TestDatabase {
    async fn create(template: &str) -> Self {
        let name = format!("t_{}", Uuid::new_v4().simple());
        let mut connection = administration().connect().await.unwrap();
        execute(&mut connection, format!("create database {name} template {template}")).await;
        connection.close().await.unwrap();
        let pool = PgPoolOptions::new().max_connections(10).connect_lazy_with(administration().database(&name));
        Self { name, pool, dropped: false }
    }

    /// A pool of up to ten connections, made when they are first needed. Each call returns the same one.
    pub fn pool(&self) -> &PgPool {
        &self.pool
    }

    /// A connection beside the pool's.
    pub async fn connect(&self) -> PgConnection {
        self.options().connect().await.unwrap()
    }

    /// For pools with settings of their own.
    pub fn options(&self) -> PgConnectOptions {
        administration().database(&self.name)
    }

    /// For other processes: sqlx and libpq understand it.
    pub fn url(&self) -> String {
        url(&self.name)
    }

    /// The database's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Drops the database now and says so if that fails; without it, the end of the value does its best.
    pub async fn close(mut self) {
        self.dropped = true;
        self.pool.close().await;
        drop_database(&self.name).await.unwrap();
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        if self.dropped {
            return;
        }
        let name = self.name.clone();
        // On a thread with a runtime of its own: the test's own may be busy with this very drop.
        let dropping = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(drop_database(&name)).map_err(std::io::Error::other)
        });
        if !matches!(dropping.join(), Ok(Ok(()))) {
            eprintln!("test database {} was not dropped", self.name);
        }
    }
}

async fn drop_database(name: &str) -> sqlx::Result<()> {
    let mut connection = administration().connect().await?;
    let statement = sqlx::AssertSqlSafe(format!("drop database if exists {name} with (force)"));
    sqlx::query(statement).execute(&mut connection).await?;
    connection.close().await
}
