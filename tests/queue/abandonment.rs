//! Abandoning keys by age while operators act on the same failures and hosts record to the same keys.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use postrider::queue::{self, OperateError, PgQueue};
use postrider_actors::laws::{Harness, Wish, channel};
use postrider_actors::{DeliveryId, Ended, Lease, Queue, Reason, Retention, Search, Status, Verdict};
use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, PgPool};
use tokio::sync::Barrier;

use crate::audit::nothing_is_found;
use crate::harness::{Postgres, Wished, operator, pool, postgres, recorder};

const ROUNDS: usize = 4;
/// Of each round; every sixth is held by a host's open transaction.
const KEYS: usize = 360;
const BEHIND: usize = 2;
const OPERATORS: usize = 4;
const CLEANERS: usize = 2;
const PAST_RETENTION: Duration = Duration::from_secs(31 * 86_400);

/// A key whose head has failed, and what waits behind it.
#[derive(Debug, Clone)]
struct Blocked {
    key: String,
    failure: DeliveryId,
    behind: Vec<DeliveryId>,
    /// The last of the key, which an operator cancels at the same time, abandoned or not.
    swept: DeliveryId,
}

/// What an operator did to a failure and how it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    Retried,
    Cancelled,
    FoundItGone,
}

fn wish(key: &str) -> Wish {
    Wish { channel: channel().name, ordering_key: Some(key.to_owned()) }
}

async fn claim(queue: &PgQueue) -> Vec<Lease> {
    queue.claim(&channel().name, 500.try_into().unwrap(), Duration::from_secs(60), Search::All).await.unwrap()
}

async fn end(queue: &PgQueue, leases: &[Lease], verdict: Verdict) {
    let ended: Vec<_> = leases
        .iter()
        .map(|lease| {
            let (delivery, token) = (lease.delivery.id, lease.token);
            Ended { delivery, token, ordered: true, verdict, effect: None }
        })
        .collect();
    queue.record(&channel(), &ended).await.unwrap();
}

/// Keys whose failures are past retention.
async fn blocked(postgres: &Postgres, queue: &PgQueue, round: usize) -> Vec<Blocked> {
    let keys: Vec<String> = (0..KEYS).map(|key| format!("{round}-{key:03}")).collect();
    let wishes = keys.iter().flat_map(|key| vec![wish(key); 2 + BEHIND]).collect();
    let ids = postgres.record(wishes).await;
    let leases = claim(queue).await;
    assert_eq!(leases.len(), KEYS, "the head of each key");
    end(queue, &leases, Verdict::Failed { reason: Reason::Connection }).await;
    postgres.let_pass(PAST_RETENTION).await;
    keys.into_iter()
        .zip(ids.chunks(2 + BEHIND))
        .map(|(key, ids)| {
            let (failure, behind, swept) = (ids[0], ids[1..=BEHIND].to_vec(), ids[1 + BEHIND]);
            Blocked { key, failure, behind, swept }
        })
        .collect()
}

/// Retries or cancels each of `failures`; half of them before anybody cleans up, half at the same time.
async fn operate(pool: PgPool, failures: Vec<DeliveryId>, cleaning: Arc<Barrier>) -> Vec<(DeliveryId, Act)> {
    let mut connection = pool.acquire().await.unwrap();
    let mut acts = Vec::new();
    let half = failures.len() / 2;
    for (nth, id) in failures.into_iter().enumerate() {
        if nth == half {
            cleaning.wait().await;
        }
        let (done, act) = if nth % 2 == 0 {
            (queue::retry(&mut connection, id, &operator()).await, Act::Retried)
        } else {
            (queue::cancel(&mut connection, id, &operator()).await, Act::Cancelled)
        };
        acts.push(match done {
            Ok(()) => (id, act),
            Err(OperateError::NotFound(gone)) if gone == id => (id, Act::FoundItGone),
            Err(error) => panic!("{act:?}: {error:?}"),
        });
    }
    acts
}

/// Passes until one finds nothing to do.
async fn clean_up(queue: &PgQueue) {
    while queue.clean_up(&Retention::default()).await.unwrap().more {}
}

async fn deadlocks(options: &PgConnectOptions) -> i64 {
    let count = "select deadlocks from pg_stat_database where datname = current_database()";
    let pool = PgPool::connect_with(options.clone()).await.unwrap();
    sqlx::query_scalar(count).fetch_one(&pool).await.unwrap()
}

/// After the race each key is what its operator was told.
async fn is_as_told(postgres: &Postgres, key: &Blocked, act: Act) {
    let head = postgres.look(key.failure).await;
    let mut behind = Vec::new();
    for id in &key.behind {
        behind.push(postgres.look(*id).await.expect("not deleted"));
    }
    match act {
        Act::Retried => assert_eq!(head.unwrap().status, Status::Pending, "{key:?}"),
        Act::Cancelled => assert_eq!(head.unwrap().status, Status::Cancelled, "{key:?}"),
        Act::FoundItGone => {
            assert!(head.is_none(), "{key:?}");
            let abandoned = |look: &postrider_actors::laws::Look| {
                look.status == Status::Cancelled && look.last_error == Some(Reason::Abandoned)
            };
            assert!(behind.iter().all(abandoned), "{key:?}: {behind:?}");
            return;
        }
    }
    assert!(behind.iter().all(|look| look.status == Status::Pending), "kept: {key:?}: {behind:?}");
}

/// Everything that is left is sent, in each key in the order of its ordinals.
async fn drain(queue: &PgQueue, keys: &[Blocked]) {
    let order: BTreeMap<&str, Vec<DeliveryId>> = keys
        .iter()
        .map(|key| {
            let ids = [&[key.failure][..], &key.behind, &[key.swept]].concat();
            (&*key.key, ids)
        })
        .collect();
    let mut last: BTreeMap<String, usize> = BTreeMap::new();
    loop {
        let leases = claim(queue).await;
        if leases.is_empty() {
            break;
        }
        for lease in &leases {
            let key = lease.delivery.ordering_key.clone().unwrap();
            let Some(place) = order[&*key].iter().position(|id| *id == lease.delivery.id) else {
                continue; // recorded during the race, after all of these
            };
            assert!(last.insert(key, place).is_none_or(|before| before < place), "out of order");
        }
        end(queue, &leases, Verdict::Succeeded).await;
    }
}

/// In transactions of up to 1,000 keys, by two cleaners at once. Whoever comes first has the failure: an operator keeps
/// the key, one who comes later finds the failure gone. A key whose next delivery is being inserted is left for later.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn abandoning_keys_neither_deadlocks_with_operators_and_hosts_nor_breaks_an_order() {
    let postgres = postgres().await;
    let name = postgres.database.name();
    let impatient = format!("alter database {name} set deadlock_timeout = '5ms'");
    sqlx::query(AssertSqlSafe(impatient)).execute(postgres.database.pool()).await.unwrap();
    let options = postgres.database.options();
    let deadlocks_before = deadlocks(&options).await;
    let queue = PgQueue::new(pool(options.clone()));
    let people = sqlx::postgres::PgPoolOptions::new().max_connections(80).connect_with(options.clone()).await.unwrap();
    let (mut kept, mut lost) = (0, 0);
    for round in 0..ROUNDS {
        let keys = blocked(&postgres, &queue, round).await;
        let (held, free): (Vec<_>, Vec<_>) = keys.iter().enumerate().partition(|(nth, _)| nth % 6 == 0);
        let held: Vec<&Blocked> = held.into_iter().map(|(_, key)| key).collect();
        let free: Vec<&Blocked> = free.into_iter().map(|(_, key)| key).collect();
        let mut hosts = Vec::new();
        for key in &held {
            let mut host = people.begin().await.unwrap();
            let recorded = recorder().record(&mut host, &Wished(vec![wish(&key.key)])).await.unwrap();
            hosts.push((host, recorded.deliveries[0]));
        }

        let cleaning = Arc::new(Barrier::new(OPERATORS + CLEANERS + 2));
        let operators: Vec<_> = (0..OPERATORS)
            .map(|who| {
                let failures = free.iter().skip(who).step_by(OPERATORS).map(|key| key.failure).collect();
                tokio::spawn(operate(people.clone(), failures, Arc::clone(&cleaning)))
            })
            .collect();
        let cleaners: Vec<_> = (0..CLEANERS)
            .map(|_| {
                let (queue, cleaning) = (queue.clone(), Arc::clone(&cleaning));
                tokio::spawn(async move {
                    cleaning.wait().await;
                    clean_up(&queue).await;
                })
            })
            .collect();
        // A host that records to the very keys that are being abandoned: it may wait for them, never for ever.
        let recording = {
            let (people, cleaning) = (people.clone(), Arc::clone(&cleaning));
            let keys: Vec<Wish> = free.iter().step_by(5).map(|key| wish(&key.key)).collect();
            tokio::spawn(async move {
                cleaning.wait().await;
                for keys in keys.chunks(6) {
                    let mut host = people.begin().await.unwrap();
                    recorder().record(&mut host, &Wished(keys.to_vec())).await.unwrap();
                    host.commit().await.unwrap();
                }
            })
        };
        let sweeping = {
            let (people, cleaning) = (people.clone(), Arc::clone(&cleaning));
            let last: Vec<DeliveryId> = free.iter().rev().map(|key| key.swept).collect();
            tokio::spawn(async move {
                let mut connection = people.acquire().await.unwrap();
                cleaning.wait().await;
                for id in last {
                    match queue::cancel(&mut connection, id, &operator()).await {
                        Ok(()) | Err(OperateError::NotAllowed { status: Status::Cancelled, .. }) => {}
                        Err(error) => panic!("{error:?}"),
                    }
                }
            })
        };
        let mut acts = BTreeMap::new();
        for operator in operators {
            acts.extend(operator.await.unwrap());
        }
        for cleaner in cleaners {
            cleaner.await.unwrap();
        }
        recording.await.unwrap();
        sweeping.await.unwrap();

        for key in &free {
            let act = acts[&key.failure];
            *(if act == Act::FoundItGone { &mut lost } else { &mut kept }) += 1;
            is_as_told(&postgres, key, act).await;
        }
        for key in &held {
            assert_eq!(postgres.look(key.failure).await.unwrap().status, Status::Failed, "skipped: {key:?}");
        }
        nothing_is_found(&postgres, "after the race").await;
        for (nth, (host, recorded)) in hosts.into_iter().enumerate() {
            if nth % 2 == 0 {
                host.commit().await.unwrap();
                let look = postgres.look(recorded).await.unwrap();
                assert_eq!(look.status, Status::Pending, "waits behind the failure");
            } else {
                host.rollback().await.unwrap();
            }
        }
        clean_up(&queue).await;
        for key in &held {
            is_as_told(&postgres, key, Act::FoundItGone).await;
        }
        // A replica that has just started looks for postponed releases at once.
        drain(&PgQueue::new(queue.pool().clone()), &keys).await;
        nothing_is_found(&postgres, "after the round").await;
        let left = "select count(*) from postrider.deliveries where status in ('pending', 'failed')";
        assert_eq!(sqlx::query_scalar::<_, i64>(left).fetch_one(&people).await.unwrap(), 0, "stuck");
    }
    assert!(kept > 0 && lost > 0, "no race at all: {kept} kept, {lost} abandoned");
    // Statistics are certain once their sessions have ended.
    people.close().await;
    queue.pool().close().await;
    assert_eq!(deadlocks(&options).await, deadlocks_before);
}

/// Row by row, the other way round: the operator holds the failure first.
#[tokio::test]
async fn a_failure_that_an_operator_is_retrying_is_skipped_and_its_key_kept() {
    let postgres = postgres().await;
    let ids = postgres.record(vec![wish("key"); 3]).await;
    let leases = claim(&postgres.queue).await;
    end(&postgres.queue, &leases, Verdict::Failed { reason: Reason::Connection }).await;
    postgres.let_pass(PAST_RETENTION).await;
    let mut host = postgres.database.pool().begin().await.unwrap();
    queue::retry(&mut host, ids[0], &operator()).await.unwrap();
    let cleaned = postgres.queue.clean_up(&Retention::default()).await.unwrap();
    assert_eq!((cleaned.abandoned_keys, cleaned.more), (0, false), "neither taken nor waited for");
    host.commit().await.unwrap();
    clean_up(&postgres.queue).await;
    assert_eq!(claim(&postgres.queue).await[0].delivery.id, ids[0]);
    nothing_is_found(&postgres, "the key goes on").await;
}
