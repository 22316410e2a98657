//! Deadlocks and serialization failures: none among Postrider's own statements, and those that others cause cost nothing.

use std::time::{Duration, Instant};

use postrider::queue::{self, OperateError, PgQueue};
use postrider_actors::laws::{Harness, channel, wishes};
use postrider_actors::{
    DeliveryId, Ended, Lease, Queue, QueueError, Reason, Recorded, Retention, Search, Settled, Status, Verdict,
};
use sqlx::{AssertSqlSafe, PgPool};

use crate::harness::{Postgres, Wished, operator, pool, postgres, recorder};
use crate::support::eventually;

const SOON: Duration = Duration::from_secs(10);
const LEASE: Duration = Duration::from_secs(60);
const STRESS: Duration = Duration::from_secs(8);
const ROWS: usize = 200;

fn ended(lease: &Lease, verdict: Verdict) -> Ended<queue::Effect> {
    let ordered = lease.delivery.ordering_key.is_some();
    Ended { delivery: lease.delivery.id, token: lease.token, ordered, verdict, effect: None }
}

async fn deadlocks(pool: &PgPool) -> i64 {
    let count = "select deadlocks from pg_stat_database where datname = current_database()";
    sqlx::query_scalar(count).fetch_one(pool).await.unwrap()
}

/// A seeded sequence (SplitMix64).
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % u64::try_from(bound).unwrap()).unwrap()
    }

    fn shuffle<T>(&mut self, all: &mut [T]) {
        (1..all.len()).rev().for_each(|last| all.swap(last, self.below(last + 1)));
    }
}

/// What one session of the stress needs.
struct Session {
    queue: PgQueue,
    pool: PgPool,
    dice: Dice,
    until: Instant,
}

impl Session {
    fn goes_on(&self) -> bool {
        Instant::now() < self.until
    }

    async fn some_ids(&mut self, most: i64) -> Vec<DeliveryId> {
        let ids: Vec<uuid::Uuid> = sqlx::query_scalar("select id from postrider.deliveries order by random() limit $1")
            .bind(most)
            .fetch_all(&self.pool)
            .await
            .unwrap();
        let mut ids: Vec<_> = ids.into_iter().map(DeliveryId::from_uuid).collect();
        self.dice.shuffle(&mut ids);
        ids
    }

    /// Claims under leases that often lapse before the outcomes come, and records them in batches of any order.
    async fn work(mut self) -> usize {
        let mut done = 0;
        while self.goes_on() {
            let slots = (1 + self.dice.below(40)).try_into().unwrap();
            let lease = Duration::from_millis(1 + self.dice.below(40) as u64);
            let mut leases = self.queue.claim(&channel().name, slots, lease, Search::All).await.unwrap();
            self.dice.shuffle(&mut leases);
            let back = leases.split_off(leases.len() - leases.len() / 5);
            if self.dice.below(3) == 0 {
                tokio::time::sleep(lease).await;
            }
            let verdicts = [
                Verdict::Succeeded,
                Verdict::Succeeded,
                Verdict::Failed { reason: Reason::Connection },
                Verdict::Retry { reason: Reason::Connection, wait: Duration::from_millis(5) },
                Verdict::Defer { reason: Reason::Connection, wait: Duration::from_millis(5) },
            ];
            let ends: Vec<_> =
                leases.iter().map(|lease| ended(lease, verdicts[self.dice.below(verdicts.len())])).collect();
            let recorded = self.queue.record(&channel(), &ends).await.unwrap();
            done += recorded.settled.iter().filter(|settled| matches!(settled, Settled::Recorded(_))).count();
            let back: Vec<_> = back.iter().map(|lease| (lease.delivery.id, lease.token)).collect();
            self.queue.give_back(&channel().name, &back).await.unwrap();
        }
        done
    }

    /// Cancels and retries several at a time, in any order, each for itself as operators do.
    async fn operate(mut self) -> usize {
        let mut done = 0;
        while self.goes_on() {
            let mut connection = self.pool.acquire().await.unwrap();
            for id in self.some_ids(8).await {
                let wish = match self.dice.below(5) < 2 {
                    true => queue::cancel(&mut connection, id, &operator()).await,
                    false => queue::retry(&mut connection, id, &operator()).await,
                };
                match wish {
                    Ok(()) => done += 1,
                    Err(OperateError::NotFound(_) | OperateError::NotAllowed { .. }) => {}
                    Err(error) => panic!("{error:?}"),
                }
            }
        }
        done
    }

    /// Deletes what is finished and abandons keys with a failure, at once.
    async fn clean(self) -> usize {
        let mut done = 0;
        while self.goes_on() {
            let retention = Retention { succeeded: Duration::ZERO, failed: Duration::from_millis(20) };
            let cleaned = self.queue.clean_up(&retention).await.unwrap();
            done += usize::try_from(cleaned.deleted + cleaned.abandoned_keys).unwrap();
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        done
    }

    /// Records ordered and unordered deliveries, several keys in one transaction, and keeps about 200 in the table.
    async fn host(mut self) -> usize {
        let mut done = 0;
        while self.goes_on() {
            let there: i64 = sqlx::query_scalar("select count(*) from postrider.deliveries where status = 'pending'")
                .fetch_one(&self.pool)
                .await
                .unwrap();
            if usize::try_from(there).unwrap() >= ROWS {
                tokio::time::sleep(Duration::from_millis(5)).await;
                continue;
            }
            let mut wanted = wishes(10, None);
            for _ in 0..5 {
                wanted.extend(wishes(2, Some(&format!("key-{}", self.dice.below(12)))));
            }
            self.dice.shuffle(&mut wanted);
            let mut transaction = self.pool.begin().await.unwrap();
            done += recorder().record(&mut transaction, &Wished(wanted)).await.unwrap().deliveries.len();
            transaction.commit().await.unwrap();
        }
        done
    }
}

/// C37: multi-row writers that lock the same rows in different orders.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c37_claims_outcomes_operators_and_cleanup_over_the_same_rows_never_deadlock() {
    let postgres = postgres().await;
    let options = postgres.database.options().options([("deadlock_timeout", "50ms")]);
    let before = deadlocks(postgres.database.pool()).await;
    let shared = pool(options.clone());
    let until = Instant::now() + STRESS;
    let session = |seed: u64| Session {
        // Each a replica of its own, which looks for postponed releases by itself.
        queue: PgQueue::new(shared.clone()),
        pool: postgres.database.pool().clone(),
        dice: Dice(seed),
        until,
    };
    let sessions = [
        tokio::spawn(session(1).work()),
        tokio::spawn(session(2).work()),
        tokio::spawn(session(3).work()),
        tokio::spawn(session(4).operate()),
        tokio::spawn(session(5).operate()),
        tokio::spawn(session(6).clean()),
        tokio::spawn(session(7).host()),
        tokio::spawn(session(8).host()),
    ];
    for (number, session) in sessions.into_iter().enumerate() {
        let done = session.await.unwrap();
        assert!(done >= 10, "session {number} did {done}: too few to prove anything");
    }
    // The ends of its sessions report what they counted.
    shared.close().await;
    tokio::time::timeout(SOON, postgres.database.pool().close()).await.unwrap();
    let counter = pool(postgres.database.options());
    assert_eq!(deadlocks(&counter).await - before, 0);
}

/// A host that locks two rows of Postrider's the other way round. The outcome is recorded all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c37_an_outcome_that_is_the_victim_of_a_hosts_deadlock_is_recorded_once_the_host_is_gone() {
    let postgres = postgres().await;
    let queue = PgQueue::new(pool(postgres.database.options().options([("deadlock_timeout", "300ms")])));
    let ids = postgres.record(wishes(2, Some("key"))).await;
    let lease = queue.claim(&channel().name, 1.try_into().unwrap(), LEASE, Search::All).await.unwrap().remove(0);
    let mut host = postgres.database.pool().begin().await.unwrap();
    // The host never finds the deadlock: the victim is Postrider.
    sqlx::raw_sql("set local deadlock_timeout = '60s'").execute(&mut *host).await.unwrap();
    let lock = "select from postrider.deliveries where id = $1 for update";
    sqlx::query(lock).bind(ids[1].as_uuid()).execute(&mut *host).await.unwrap();
    let ends = [ended(&lease, Verdict::Succeeded)];
    let recording = tokio::spawn(async move { queue.record(&channel(), &ends).await });
    eventually(SOON, "the recording holds the first row and waits for the second", async || {
        let waiting = "select count(*) from pg_stat_activity where application_name = 'postrider'
                          and datname = current_database() and wait_event_type = 'Lock'";
        sqlx::query_scalar::<_, i64>(waiting).fetch_one(postgres.database.pool()).await.unwrap() == 1
    })
    .await;
    sqlx::query(lock).bind(ids[0].as_uuid()).execute(&mut *host).await.unwrap();
    // Having both, the host was let go first: the recording was ended, and is made again.
    host.rollback().await.unwrap();
    let recorded = recording.await.unwrap().unwrap();
    assert_eq!(recorded, Recorded { settled: vec![Settled::Recorded(Status::Succeeded)], released: 1 });
    let look = postgres.look(ids[0]).await.unwrap();
    assert_eq!((look.status, look.attempts), (Status::Succeeded, 1));
    eventually(SOON, "there was one", async || deadlocks(postgres.database.pool()).await == 1).await;
}

/// Every change of a delivery is refused with `code`, the next `times` times.
async fn refuse(postgres: &Postgres, code: &str, times: u32) {
    let refuse = format!(
        "drop sequence if exists refusals cascade;
         create sequence refusals;
         create or replace function refuse() returns trigger language plpgsql as $$
         begin
             if nextval('refusals') <= {times} then raise exception 'refused' using errcode = '{code}'; end if;
             return null;
         end $$;
         create or replace trigger refuse after update or delete on postrider.deliveries execute function refuse()"
    );
    sqlx::raw_sql(AssertSqlSafe(refuse)).execute(postgres.database.pool()).await.unwrap();
}

async fn refused(postgres: &Postgres) -> i64 {
    sqlx::query_scalar("select last_value from refusals").fetch_one(postgres.database.pool()).await.unwrap()
}

#[tokio::test]
async fn c37_a_victim_is_made_again_a_bounded_number_of_times_and_charged_nothing() {
    let postgres = postgres().await;
    let queue = &postgres.queue;
    let id = postgres.record(wishes(1, None)).await[0];
    let attempts = async || postgres.look(id).await.unwrap().attempts;
    let claim = async || queue.claim(&channel().name, 1.try_into().unwrap(), LEASE, Search::All).await;
    for code in ["40P01", "40001"] {
        refuse(&postgres, code, 2).await;
        let lease = claim().await.unwrap().remove(0);
        assert_eq!((lease.attempt, attempts().await), (1, 1));
        refuse(&postgres, code, 2).await;
        queue.give_back(&channel().name, &[(id, lease.token)]).await.unwrap();
        assert_eq!(attempts().await, 0);
    }
    // For ever: it is said, and nothing has changed.
    refuse(&postgres, "40P01", u32::MAX).await;
    assert!(matches!(claim().await.unwrap_err(), QueueError::Refused { .. }));
    assert_eq!((refused(&postgres).await, attempts().await), (4, 0));
    // Whatever else is refused is not made again.
    refuse(&postgres, "23514", u32::MAX).await;
    claim().await.unwrap_err();
    assert_eq!(refused(&postgres).await, 1);

    refuse(&postgres, "40001", 2).await;
    let lease = claim().await.unwrap().remove(0);
    refuse(&postgres, "40001", 2).await;
    let recorded = queue.record(&channel(), &[ended(&lease, Verdict::Succeeded)]).await.unwrap();
    assert_eq!(recorded.settled, [Settled::Recorded(Status::Succeeded)]);
    assert_eq!(attempts().await, 1);
    refuse(&postgres, "40001", 2).await;
    let at_once = Retention { succeeded: Duration::ZERO, failed: Duration::ZERO };
    assert_eq!(queue.clean_up(&at_once).await.unwrap().deleted, 1);
}
