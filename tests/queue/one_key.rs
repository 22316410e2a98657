//! C40: many workers on one ordering key.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use postrider::queue::{self, PgQueue};
use postrider_actors::laws::{Harness, channel, wishes};
use postrider_actors::{DeliveryId, Ended, Lease, Queue, Reason, Search, Settled, Status, Verdict};

use crate::harness::{Postgres, let_pass, postgres};

const LEASE: Duration = Duration::from_secs(60);
const SOON: Duration = Duration::from_secs(60);
const WORKERS: usize = 12;
const HOSTS: usize = 3;
const ROWS: usize = 300;

async fn claim(queue: &PgQueue) -> Vec<Lease> {
    queue.claim(&channel().name, 5.try_into().unwrap(), LEASE, Search::All).await.unwrap()
}

async fn record(queue: &PgQueue, lease: &Lease, verdict: Verdict) -> Settled {
    let (delivery, token, ordered) = (lease.delivery.id, lease.token, lease.delivery.ordering_key.is_some());
    queue.record(&channel(), &[Ended { delivery, token, ordered, verdict, effect: None }]).await.unwrap().settled[0]
}

/// What receivers saw, and how many attempts were under way at once.
#[derive(Default)]
struct Receipts {
    log: Mutex<Vec<(DeliveryId, u32)>>,
    under_way: AtomicUsize,
    most_under_way: AtomicUsize,
    done: AtomicUsize,
}

/// Works until everything is done; every tenth first attempt kills its worker in mid-send.
async fn work(queue: PgQueue, pool: sqlx::PgPool, receipts: Arc<Receipts>) {
    while receipts.done.load(Ordering::SeqCst) < ROWS {
        for lease in claim(&queue).await {
            let now = receipts.under_way.fetch_add(1, Ordering::SeqCst) + 1;
            receipts.most_under_way.fetch_max(now, Ordering::SeqCst);
            let sent = {
                let mut log = receipts.log.lock().unwrap();
                log.push((lease.delivery.id, lease.attempt));
                log.len()
            };
            tokio::task::yield_now().await;
            let dies = sent.is_multiple_of(10) && lease.attempt == 1;
            receipts.under_way.fetch_sub(1, Ordering::SeqCst);
            if dies {
                let_pass(&pool, LEASE).await;
            } else {
                let settled = record(&queue, &lease, Verdict::Succeeded).await;
                assert_eq!(settled, Settled::Recorded(Status::Succeeded));
                receipts.done.fetch_add(1, Ordering::SeqCst);
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c40_twelve_workers_send_one_key_one_at_a_time_in_commit_order_whoever_dies() {
    let postgres = Arc::new(postgres().await);
    let pool = queue::pool_options(Duration::from_secs(5)).max_connections(16);
    let pool = pool.connect_lazy_with(queue::connect_options(postgres.database.options()));
    let receipts = Arc::<Receipts>::default();
    let workers = (0..WORKERS).map(|_| {
        // Each a replica of its own.
        tokio::spawn(work(PgQueue::new(pool.clone()), postgres.database.pool().clone(), Arc::clone(&receipts)))
    });
    let hosts = (0..HOSTS).map(|_| {
        let postgres = Arc::clone(&postgres);
        tokio::spawn(async move {
            for _ in 0..ROWS / HOSTS / 4 {
                assert_eq!(postgres.record(wishes(4, Some("key"))).await.len(), 4);
            }
        })
    });
    for task in workers.chain(hosts).collect::<Vec<_>>() {
        tokio::time::timeout(SOON, task).await.expect("in time").unwrap();
    }
    let log = receipts.log.lock().unwrap().clone();
    assert_eq!(receipts.most_under_way.load(Ordering::SeqCst), 1);
    let committed: Vec<uuid::Uuid> = sqlx::query_scalar("select id from postrider.deliveries order by ordinal")
        .fetch_all(postgres.database.pool())
        .await
        .unwrap();
    let committed: Vec<_> = committed.into_iter().map(DeliveryId::from_uuid).collect();
    assert_eq!(committed.len(), ROWS);
    let mut received: Vec<_> = log.iter().map(|(id, _)| *id).collect();
    received.dedup();
    assert_eq!(received, committed, "each at its turn, and again only before the next");
    assert!(log.len() >= ROWS + ROWS / 20, "workers died: {} sends", log.len());
}

/// A head that waits for an hour, and one behind it.
async fn retrying() -> (Postgres, Vec<DeliveryId>) {
    let postgres = postgres().await;
    let ids = postgres.record(wishes(2, Some("key"))).await;
    let head = claim(&postgres.queue).await.remove(0);
    let verdict = Verdict::Retry { reason: Reason::Connection, wait: channel().max_age / 2 };
    assert_eq!(record(&postgres.queue, &head, verdict).await, Settled::Recorded(Status::Pending));
    (postgres, ids)
}

async fn claimed(postgres: &Postgres) -> Vec<DeliveryId> {
    let mut ids: Vec<_> = claim(&postgres.queue).await.iter().map(|lease| lease.delivery.id).collect();
    ids.sort();
    ids
}

#[tokio::test]
async fn c40_a_head_that_waits_holds_back_its_own_key_alone() {
    let (postgres, _) = retrying().await;
    assert_eq!(claimed(&postgres).await, []);
    let mut others = postgres.record(wishes(2, None)).await;
    others.extend(postgres.record(wishes(1, Some("other"))).await);
    others.sort();
    postgres.record(wishes(1, Some("key"))).await;
    assert_eq!(claimed(&postgres).await, others);
}

#[tokio::test]
async fn c40_the_next_goes_at_once_however_the_head_ends() {
    let succeeds = async |postgres: &Postgres| {
        postgres.let_pass(channel().max_age / 2).await;
        let head = claim(&postgres.queue).await.remove(0);
        assert_eq!(record(&postgres.queue, &head, Verdict::Succeeded).await, Settled::Recorded(Status::Succeeded));
    };
    let fails = async |postgres: &Postgres| {
        postgres.let_pass(channel().max_age / 2).await;
        let head = claim(&postgres.queue).await.remove(0);
        let failed = Verdict::Failed { reason: Reason::Connection };
        assert_eq!(record(&postgres.queue, &head, failed).await, Settled::Recorded(Status::Failed));
        assert_eq!(claimed(postgres).await, [], "a failure holds back its key");
    };
    let (postgres, ids) = retrying().await;
    succeeds(&postgres).await;
    assert_eq!(claimed(&postgres).await, ids[1..]);

    let (postgres, ids) = retrying().await;
    assert!(postgres.cancel(ids[0]).await);
    assert_eq!(claimed(&postgres).await, ids[1..]);

    let (postgres, ids) = retrying().await;
    fails(&postgres).await;
    assert!(postgres.cancel(ids[0]).await);
    assert_eq!(claimed(&postgres).await, ids[1..]);

    let (postgres, ids) = retrying().await;
    fails(&postgres).await;
    assert!(postgres.retry(ids[0]).await);
    succeeds(&postgres).await;
    assert_eq!(claimed(&postgres).await, ids[1..]);
}
