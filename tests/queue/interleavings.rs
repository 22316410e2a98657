//! Order per key under arbitrary interleavings of hosts, claimers and operators, on PostgreSQL.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use postrider::queue::PgQueue;
use postrider_actors::laws::{Harness, channel, wishes};
use postrider_actors::{DeliveryId, Ended, Lease, Queue, Reason, Search, Settled, Status, Verdict};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use sqlx::{Postgres as Database, Transaction};

use crate::harness::{Postgres, Wished, postgres, recorder};

const LEASE: Duration = Duration::from_secs(60);
/// Of a delivery that loses its worker again and again.
const LONGEST_LEASE: Duration = Duration::from_secs(3600);
const SESSIONS: usize = 3;
const KEYS: [&str; 3] = ["a", "b", "c"];

#[derive(Debug, Clone)]
enum Step {
    Record { session: usize, key: usize },
    Commit { session: usize },
    RollBack { session: usize },
    Claim,
    Succeed { nth: usize },
    Retry { nth: usize },
    Fail { nth: usize },
    LoseWorker { nth: usize },
    LetLeasesEnd,
    Cancel { nth: usize },
    OperatorRetry { nth: usize },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let session = 0..SESSIONS;
    let nth = 0usize..8;
    let step = prop_oneof![
        6 => (session.clone(), 0..KEYS.len()).prop_map(|(session, key)| Step::Record { session, key }),
        5 => session.clone().prop_map(|session| Step::Commit { session }),
        1 => session.prop_map(|session| Step::RollBack { session }),
        6 => Just(Step::Claim),
        5 => nth.clone().prop_map(|nth| Step::Succeed { nth }),
        2 => nth.clone().prop_map(|nth| Step::Retry { nth }),
        1 => nth.clone().prop_map(|nth| Step::Fail { nth }),
        1 => nth.clone().prop_map(|nth| Step::LoseWorker { nth }),
        2 => Just(Step::LetLeasesEnd),
        1 => nth.clone().prop_map(|nth| Step::Cancel { nth }),
        1 => nth.prop_map(|nth| Step::OperatorRetry { nth }),
    ];
    proptest::collection::vec(step, 10..60)
}

/// A host's open transaction and what it has recorded.
type OpenSession = (Transaction<'static, Database>, Vec<(usize, DeliveryId)>);

/// What the test knows from outside: commits in their order, and what a worker was handed.
#[derive(Default)]
struct World {
    prefix: String,
    open: HashMap<usize, OpenSession>,
    key_held_by: HashMap<usize, usize>,
    committed: BTreeMap<usize, Vec<DeliveryId>>,
    first_sends: BTreeMap<usize, Vec<DeliveryId>>,
    held: Vec<Lease>,
    zombies: Vec<Lease>,
    ended: HashSet<DeliveryId>,
}

impl World {
    fn key(&self, index: usize) -> String {
        format!("{}-{}", self.prefix, KEYS[index])
    }

    fn everything(&self) -> Vec<DeliveryId> {
        self.committed.values().flatten().copied().collect()
    }

    async fn step(&mut self, postgres: &Postgres, step: Step) {
        match step {
            Step::Record { session, key } => {
                if self.key_held_by.get(&key).is_some_and(|holder| *holder != session) {
                    return; // would wait for the other session
                }
                let name = self.key(key);
                let (transaction, recorded) = match self.open.entry(session) {
                    Entry::Occupied(open) => open.into_mut(),
                    Entry::Vacant(none) => none.insert((postgres.database.pool().begin().await.unwrap(), Vec::new())),
                };
                let event = Wished(wishes(1, Some(&name)));
                let id = recorder().record(transaction, &event).await.unwrap().deliveries[0];
                recorded.push((key, id));
                self.key_held_by.insert(key, session);
            }
            Step::Commit { session } => {
                if let Some((transaction, recorded)) = self.open.remove(&session) {
                    transaction.commit().await.unwrap();
                    for (key, id) in recorded {
                        self.committed.entry(key).or_default().push(id);
                    }
                    self.key_held_by.retain(|_, holder| *holder != session);
                }
            }
            Step::RollBack { session } => {
                if let Some((transaction, _)) = self.open.remove(&session) {
                    transaction.rollback().await.unwrap();
                    self.key_held_by.retain(|_, holder| *holder != session);
                }
            }
            Step::Claim => self.claim(postgres).await,
            Step::Succeed { nth } => self.end(postgres, nth, Verdict::Succeeded).await,
            Step::Retry { nth } => {
                let verdict = Verdict::Retry { reason: Reason::Connection, wait: Duration::from_millis(1) };
                self.end(postgres, nth, verdict).await;
            }
            Step::Fail { nth } => self.end(postgres, nth, Verdict::Failed { reason: Reason::Connection }).await,
            Step::LoseWorker { nth } => {
                if nth < self.held.len() {
                    let lost = self.held.swap_remove(nth);
                    self.zombies.push(lost);
                }
            }
            Step::LetLeasesEnd => {
                postgres.let_pass(LONGEST_LEASE).await;
                // Those workers come late now: they may still try to record.
                self.zombies.append(&mut self.held);
            }
            Step::Cancel { nth } => {
                if let Some(id) = self.everything().get(nth).copied()
                    && postgres.cancel(id).await
                {
                    self.ended.insert(id);
                }
            }
            Step::OperatorRetry { nth } => {
                if let Some(id) = self.everything().get(nth).copied() {
                    postgres.retry(id).await;
                }
            }
        }
    }

    async fn claim(&mut self, postgres: &Postgres) {
        let slots = 10.try_into().unwrap();
        // A replica that has just started: it looks for postponed releases at once, others within seconds.
        let replica = PgQueue::new(postgres.queue.pool().clone());
        for lease in replica.claim(&channel().name, slots, LEASE, Search::All).await.unwrap() {
            let id = lease.delivery.id;
            let (key, order) =
                self.committed.iter().find(|(_, ids)| ids.contains(&id)).expect("only what is committed");
            let place = order.iter().position(|one| *one == id).unwrap();
            let unfinished_before: Vec<_> = order[..place].iter().filter(|one| !self.ended.contains(one)).collect();
            assert!(unfinished_before.is_empty(), "claimed past the head of its key");
            let rival = self.held.iter().find(|held| held.delivery.ordering_key == lease.delivery.ordering_key);
            assert!(rival.is_none(), "two leases of one key");
            let firsts = self.first_sends.entry(*key).or_default();
            if !firsts.contains(&id) {
                firsts.push(id);
            }
            self.held.push(lease);
        }
    }

    async fn end(&mut self, postgres: &Postgres, nth: usize, verdict: Verdict) {
        let late = nth >= self.held.len();
        let from = if late { &mut self.zombies } else { &mut self.held };
        if from.is_empty() {
            return;
        }
        let lease = from.swap_remove(nth % from.len());
        let (delivery, token) = (lease.delivery.id, lease.token);
        let ended = Ended { delivery, token, ordered: true, verdict, effect: None };
        let settled = postgres.queue.record(&channel(), &[ended]).await.unwrap().settled[0];
        if settled == Settled::Recorded(Status::Succeeded) {
            self.ended.insert(delivery);
        }
    }

    /// Every key runs to its end once nothing is in the way.
    async fn finish(&mut self, postgres: &Postgres) {
        for session in 0..SESSIONS {
            self.step(postgres, Step::Commit { session }).await;
        }
        for _ in 0..200 {
            for id in self.everything() {
                if postgres.look(id).await.is_some_and(|look| look.status == Status::Failed) {
                    assert!(postgres.retry(id).await);
                }
            }
            self.step(postgres, Step::LetLeasesEnd).await;
            self.claim(postgres).await;
            if self.held.is_empty() {
                break;
            }
            while !self.held.is_empty() {
                self.end(postgres, 0, Verdict::Succeeded).await;
            }
        }
        for (key, order) in &self.committed {
            for id in order {
                assert!(self.ended.contains(id), "stuck: {id} of key {key} of {order:?}");
            }
            let firsts = self.first_sends.get(key).cloned().unwrap_or_default();
            let mut ascending = firsts.clone();
            ascending.sort_by_key(|id| order.iter().position(|one| one == id));
            assert_eq!(firsts, ascending, "first sends are in commit order");
        }
        let unfinished: i64 =
            sqlx::query_scalar("select coalesce(sum(unfinished), 0)::bigint from postrider.delivery_orderings")
                .fetch_one(postgres.database.pool())
                .await
                .unwrap();
        assert_eq!(unfinished, 0, "the keys' books balance");
    }
}

#[test]
fn order_within_a_key_holds_under_any_interleaving_of_hosts_workers_and_operators() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let postgres = runtime.block_on(postgres());
    let config = Config { cases: 100, max_shrink_iters: 200, failure_persistence: None, ..Config::default() };
    let case = std::cell::Cell::new(0);
    TestRunner::new(config)
        .run(&steps(), |steps| {
            case.set(case.get() + 1);
            runtime.block_on(async {
                // From an empty queue, whatever the last case left.
                sqlx::query("truncate postrider.deliveries, postrider.delivery_orderings, postrider.delivery_releases")
                    .execute(postgres.database.pool())
                    .await
                    .unwrap();
                let mut world = World { prefix: case.get().to_string(), ..World::default() };
                for step in steps {
                    world.step(&postgres, step).await;
                }
                world.finish(&postgres).await;
            });
            Ok(())
        })
        .unwrap();
    runtime.block_on(async { postgres.database.close().await });
}
