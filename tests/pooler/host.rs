//! `record` on a host's connection through a transaction pooler.

use postrider::Recorder;
use sqlx::postgres::PgPoolOptions;
use tokio::task::JoinSet;

use crate::bouncer::{Bouncer, Mode, Settings};
use crate::channel::{Happened, Telling};
use crate::support;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn measure() {
    let database = support::database().await;
    for capacity in [100, 0] {
        let bouncer = Bouncer::start(&database, &Settings::new(Mode::Transaction, 3)).await;
        let options = bouncer.options(&database).extra_float_digits(None).statement_cache_capacity(capacity);
        let pool = PgPoolOptions::new().max_connections(8).connect_lazy_with(options);
        let mut tasks = JoinSet::new();
        for _ in 0..8 {
            let pool = pool.clone();
            tasks.spawn(async move {
                let mut errors = Vec::new();
                for _ in 0..50 {
                    let mut transaction = pool.begin().await.unwrap();
                    let recorder = Recorder::new(Telling::default().channels());
                    match recorder.record(&mut transaction, &Happened).await {
                        Ok(_) => transaction.commit().await.unwrap(),
                        Err(error) => errors.push(format!("{error:?}")),
                    }
                }
                errors
            });
        }
        let errors = tasks.join_all().await.concat();
        let rows: (i64, i64) = sqlx::query_as(
            "select (select count(*) from postrider.events), (select count(*) from postrider.deliveries)",
        )
        .fetch_one(database.pool())
        .await
        .unwrap();
        eprintln!("capacity {capacity}: {} errors of 400, rows {rows:?}, {:?}", errors.len(), errors.first());
    }
}
