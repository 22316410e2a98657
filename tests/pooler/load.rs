//! Other clients of a database, as busy as they can be.

use std::time::Duration;

use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, PgConnection};
use tokio::task::JoinSet;

use crate::bouncer::Mode;

/// Goes on until it is dropped.
pub struct Load(#[expect(dead_code, reason = "dropped")] JoinSet<()>);

/// Statements and, where `mode` allows them, transactions; some as fast as they go, some now and then.
pub fn load(options: &PgConnectOptions, mode: Mode, clients: u64) -> Load {
    let mut tasks = JoinSet::new();
    for client in 0..clients {
        let options = options.clone().extra_float_digits(None);
        tasks.spawn(async move {
            let mut connection = options.connect().await.unwrap();
            loop {
                simple(&mut connection, "select pg_sleep(random() * 0.002)").await;
                if mode != Mode::Statement {
                    simple(&mut connection, "begin").await;
                    simple(&mut connection, "select pg_sleep(random() * 0.002)").await;
                    simple(&mut connection, "commit").await;
                }
                tokio::time::sleep(Duration::from_millis(client % 3)).await;
            }
        });
    }
    Load(tasks)
}

async fn simple(connection: &mut PgConnection, statement: &'static str) {
    sqlx::raw_sql(statement).execute(connection).await.unwrap();
}
