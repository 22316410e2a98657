//! Effects that fail in every way fail alone.

use std::time::Duration;

use postrider::queue::Effect;
use postrider_actors::laws::{Harness, channel, wishes};
use postrider_actors::{Ended, Queue, Search, Settled, Status, Verdict};

use crate::harness::{Postgres, postgres};

fn running(statement: &'static str) -> Effect {
    Effect::new(move |connection| {
        Box::pin(async move {
            sqlx::query(statement).execute(connection).await?;
            Ok(())
        })
    })
}

/// Claims three deliveries and records them together, the middle one with `effect`.
async fn record_around(postgres: &Postgres, effect: Effect) -> Vec<Settled> {
    postgres.record(wishes(3, None)).await;
    let slots = 3.try_into().unwrap();
    let leases = postgres.queue.claim(&channel().name, slots, Duration::from_secs(60), Search::All).await.unwrap();
    let mut ended: Vec<Ended<Effect>> = leases
        .iter()
        .map(|lease| {
            let (delivery, token) = (lease.delivery.id, lease.token);
            Ended { delivery, token, ordered: false, verdict: Verdict::Succeeded, effect: None }
        })
        .collect();
    ended[1].effect = Some(effect);
    let channel = channel();
    let recording = postgres.queue.record(&channel, &ended);
    let recorded = tokio::time::timeout(Duration::from_secs(4), recording).await.expect("holds up nobody");
    recorded.unwrap().settled
}

const ALONE: [Settled; 3] =
    [Settled::Recorded(Status::Succeeded), Settled::EffectFailed, Settled::Recorded(Status::Succeeded)];

#[tokio::test]
async fn an_effect_that_is_refused_at_the_commit_fails_alone() {
    let postgres = postgres().await;
    let deferred =
        "create table once (n integer, unique (n) deferrable initially deferred); insert into once values (1)";
    sqlx::raw_sql(deferred).execute(postgres.database.pool()).await.unwrap();
    assert_eq!(record_around(&postgres, running("insert into once values (1)")).await, ALONE);
}

#[tokio::test]
async fn an_effect_that_waits_for_a_hosts_lock_fails_alone_and_in_time() {
    let postgres = postgres().await;
    let table = "create table held (n integer); insert into held values (1)";
    sqlx::raw_sql(table).execute(postgres.database.pool()).await.unwrap();
    let mut host = postgres.database.pool().begin().await.unwrap();
    sqlx::query("update held set n = 2").execute(&mut *host).await.unwrap();
    assert_eq!(record_around(&postgres, running("update held set n = 3")).await, ALONE);
    host.rollback().await.unwrap();
}

#[tokio::test]
async fn an_effect_that_takes_too_long_fails_alone_and_in_time() {
    let postgres = postgres().await;
    assert_eq!(record_around(&postgres, running("select pg_sleep(60)")).await, ALONE);
}
