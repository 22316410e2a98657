//! C39: what others leave in the way of claims, and what sends leave in the way of others.

use std::sync::Arc;
use std::time::Duration;

use postrider::SubsystemConfig;
use postrider_actors::laws::{Harness, channel, wishes};
use postrider_actors::{Ended, Lease, Outcome, Queue, Reason, Search, Settled, Status, Verdict};
use serde_json::Value;
use tokio::sync::Semaphore;

use crate::harness::postgres;
use crate::plans::{Explained, explained, walks_only_what_it_needs};
use crate::scripted::{Script, subsystem};
use crate::support::eventually;

const SOON: Duration = Duration::from_secs(10);

async fn claim(explained: &Explained, slots: usize) -> Vec<Lease> {
    explained
        .queue
        .claim(&channel().name, slots.try_into().unwrap(), Duration::from_secs(60), Search::All)
        .await
        .unwrap()
}

async fn record(explained: &Explained, leases: &[Lease], verdict: Verdict) {
    let ended: Vec<_> = leases
        .iter()
        .map(|lease| {
            let (delivery, token, ordered) = (lease.delivery.id, lease.token, lease.delivery.ordering_key.is_some());
            Ended { delivery, token, ordered, verdict, effect: None }
        })
        .collect();
    let recorded = explained.queue.record(&channel(), &ended).await.unwrap();
    assert!(recorded.settled.iter().all(|settled| matches!(settled, Settled::Recorded(_))));
}

/// `waiting` deliveries behind a key that failed, and ten of other keys: the pages that the claim of those ten touches.
async fn pages_of_a_claim_beside(waiting: i64) -> u64 {
    let explained = explained(postgres().await);
    let pool = explained.postgres.database.pool();
    explained.postgres.record(wishes(1, Some("long"))).await;
    let head = claim(&explained, 1).await;
    record(&explained, &head, Verdict::Failed { reason: Reason::Connection }).await;
    sqlx::query(
        "insert into postrider.deliveries (id, event_id, channel, owner, destination, payload, status, claimable, ordering_key, ordinal)
         select gen_random_uuid(), gen_random_uuid(), 'laws', 'owner', 'destination', '{}', 'pending', false, 'long', n + 1
           from generate_series(1, $1) n",
    )
    .bind(waiting)
    .execute(pool)
    .await
    .unwrap();
    sqlx::query("update postrider.delivery_orderings set last_ordinal = $1 + 1, unfinished = $1 + 1")
        .bind(waiting)
        .execute(pool)
        .await
        .unwrap();
    for key in 0..10 {
        explained.postgres.record(wishes(1, Some(&format!("key-{key}")))).await;
    }
    sqlx::raw_sql("vacuum analyze").execute(pool).await.unwrap();
    // Reads the catalogue, which is not what is counted.
    let nothing = postrider_actors::laws::channel_named("quiet").name;
    assert!(explained.queue.claim(&nothing, 10.try_into().unwrap(), SOON, Search::All).await.unwrap().is_empty());
    explained.plans.take();
    let leases = claim(&explained, 20).await;
    assert_eq!(leases.len(), 10, "all that is not behind the failure");
    assert!(leases.iter().all(|lease| lease.delivery.ordering_key.as_deref() != Some("long")));
    let plans = explained.plans.take();
    walks_only_what_it_needs(&plans);
    pages_of(&plans)
}

fn pages_of(plans: &[Value]) -> u64 {
    let pages = |kind: &str| plans.iter().map(|plan| plan["Plan"][kind].as_u64().unwrap()).sum::<u64>();
    pages("Shared Hit Blocks") + pages("Shared Read Blocks")
}

#[tokio::test]
async fn c39_ten_of_other_keys_go_at_once_beside_100_000_behind_a_failure_and_their_claim_costs_the_same() {
    let few = pages_of_a_claim_beside(1_000).await;
    let many = pages_of_a_claim_beside(100_000).await;
    // A level or two more in the indexes that the ten rows are written to.
    assert!(many <= few + 100, "{few} pages beside 1,000, {many} beside 100,000");
}

#[tokio::test]
async fn c39_under_a_snapshot_that_somebody_holds_the_last_claims_cost_what_the_first_did() {
    let explained = explained(postgres().await);
    let mut holder = explained.postgres.database.pool().begin().await.unwrap();
    sqlx::raw_sql("set transaction isolation level repeatable read; select 1").execute(&mut *holder).await.unwrap();
    for _ in 0..60 {
        explained.postgres.record(wishes(50, None)).await;
    }
    // What has just become ready is always looked at again.
    explained.postgres.let_pass(SOON).await;
    let slots = 50.try_into().unwrap();
    let mut pages = Vec::new();
    for round in 0..60 {
        let search = if round == 0 { Search::All } else { Search::Ahead };
        let leases = explained.queue.claim(&channel().name, slots, Duration::from_secs(60), search).await.unwrap();
        assert_eq!(leases.len(), 50);
        pages.push(pages_of(&explained.plans.take()));
        record(&explained, &leases, Verdict::Succeeded).await;
    }
    let (first, last) = (pages[1..11].iter().sum::<u64>(), pages[50..].iter().sum::<u64>());
    assert!(last * 10 <= first * 13, "pages of ten claims: {first} at first, {last} at last");
    explained.plans.take();
    assert_eq!(claim(&explained, 100).await, []);
    walks_only_what_it_needs(&explained.plans.take());
    holder.rollback().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c39_while_a_send_is_under_way_no_session_of_ours_is_in_a_transaction() {
    let postgres = postgres().await;
    let gate = Arc::new(Semaphore::new(0));
    let script = Script::new({
        let gate = Arc::clone(&gate);
        move |_| {
            let gate = Arc::clone(&gate);
            async move {
                gate.acquire().await.unwrap().forget();
                Outcome::Succeeded
            }
        }
    });
    let subsystem = subsystem(&postgres, &script, SubsystemConfig::default()).await;
    let mut ids = postgres.record(wishes(1, Some("key"))).await;
    ids.extend(postgres.record(wishes(1, None)).await);
    eventually(SOON, "both are under way", async || script.log().len() == 2).await;
    let mut connection = postgres.database.connect().await;
    for _ in 0..200 {
        // Between the statements of a recording or a pass of cleanup one may be so for a moment.
        let idle = "select count(*) from pg_stat_activity where application_name = 'postrider'
                       and datname = current_database() and state like 'idle in transaction%'
                       and clock_timestamp() - xact_start > interval '200 ms'";
        let sessions: i64 = sqlx::query_scalar(idle).fetch_one(&mut connection).await.unwrap();
        assert_eq!(sessions, 0);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(script.log().len(), 2, "still under way");
    gate.add_permits(2);
    for id in ids {
        eventually(SOON, "it is delivered", async || {
            postgres.look(id).await.is_some_and(|look| look.status == Status::Succeeded)
        })
        .await;
    }
    subsystem.shut_down().await;
}
