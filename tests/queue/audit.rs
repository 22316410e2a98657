//! The audit finds what is broken, and nothing where nothing is.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use postrider::queue::audit::{Audit, audit};
use postrider::queue::{self, OperateError};
use postrider_actors::laws::{Harness, Wish, channel, wishes};
use postrider_actors::{
    ActorState, AuditPolicy, DeliveryId, Ended, Engine, EngineConfig, FindingKind, Lease, Queue, Reason, Retention,
    Search, Settled, Status, Verdict,
};
use sqlx::{AssertSqlSafe, PgConnection, PgPool};

use crate::harness::{Postgres, Wished, operator, pool, postgres, recorder};
use crate::support::eventually;

const MINUTE: Duration = Duration::from_secs(60);
const LEASE: Duration = Duration::from_secs(60);

fn policy(older_than: Duration) -> AuditPolicy {
    AuditPolicy { channels: vec![channel()], older_than, rows: NonZeroU32::new(10_000).unwrap() }
}

async fn audited(postgres: &Postgres, policy: &AuditPolicy) -> Audit {
    let mut connection = postgres.database.pool().acquire().await.unwrap();
    audit(&mut connection, policy, Duration::from_secs(10)).await.unwrap()
}

pub async fn nothing_is_found(postgres: &Postgres, where_: &str) {
    assert_eq!(audited(postgres, &policy(MINUTE)).await.findings, [], "{where_}");
}

async fn claim(postgres: &Postgres) -> Vec<Lease> {
    postgres.queue.claim(&channel().name, 100.try_into().unwrap(), LEASE, Search::All).await.unwrap()
}

async fn end(postgres: &Postgres, lease: &Lease, verdict: Verdict) -> Settled {
    let (delivery, token, ordered) = (lease.delivery.id, lease.token, lease.delivery.ordering_key.is_some());
    let ended = Ended { delivery, token, ordered, verdict, effect: None };
    postgres.queue.record(&channel(), &[ended]).await.unwrap().settled[0]
}

async fn execute(pool: &PgPool, statement: &str) {
    sqlx::raw_sql(AssertSqlSafe(statement.to_owned())).execute(pool).await.unwrap();
}

async fn empty(pool: &PgPool) {
    execute(pool, "truncate postrider.deliveries, postrider.delivery_orderings, postrider.delivery_releases").await;
}

/// Who is broken, of three deliveries of a key and one that has none.
#[derive(Debug, Clone, Copy)]
enum Broken {
    Unordered,
    First,
    Second,
    /// The finding has no delivery to name.
    Nobody,
}

const LATE: &str = "due_at = now() - interval '61 s', ready_at = now() - interval '61 s'";

fn breakages() -> Vec<(FindingKind, Broken, String)> {
    use Broken::{First, Nobody, Second, Unordered};
    use FindingKind as Kind;
    let deliveries = |set: &str, of: &str| format!("update postrider.deliveries set {set} where {of}");
    let key = |set: &str| format!("update postrider.delivery_orderings set {set}");
    let unordered = "ordering_key is null";
    vec![
        (Kind::Overdue, Unordered, deliveries(LATE, unordered)),
        (
            Kind::Overdue,
            First,
            deliveries(LATE, "ordinal = 1")
                + ";"
                + &key("released_at = now() - interval '61 s', held_until = now() - interval '61 s'"),
        ),
        (
            Kind::OverduePastMaxAge,
            Unordered,
            deliveries(&format!("{LATE}, status_since = now() - interval '2 h'"), unordered),
        ),
        (Kind::ChannelNotRegistered, Unordered, deliveries(&format!("{LATE}, channel = 'gone'"), unordered)),
        (
            Kind::LeaseExpired,
            Unordered,
            deliveries(&format!("{LATE}, claim_token = gen_random_uuid(), attempt = 1"), unordered),
        ),
        (Kind::OutOfOrder, Second, deliveries("claimable = true", "ordinal = 2")),
        (Kind::OutOfOrder, Second, deliveries("status = 'succeeded'", "ordinal = 2") + ";" + &key("unfinished = 2")),
        (Kind::DuplicateOrdinal, First, deliveries("ordinal = 2", "ordinal = 3")),
        (Kind::KeyWithoutHead, First, deliveries("claimable = false", "ordinal = 1")),
        (Kind::KeyMissing, First, "delete from postrider.delivery_orderings".to_owned()),
        (Kind::KeyMiscounted, First, key("unfinished = 4")),
        (Kind::KeyMiscounted, First, key("unfinished = 2")),
        (Kind::KeyMiscounted, First, key("last_ordinal = 2")),
        (Kind::KeyMiscounted, Nobody, "delete from postrider.deliveries where ordinal is not null".to_owned()),
        (
            Kind::ReleasePostponed,
            Second,
            deliveries("status = 'cancelled'", "ordinal = 1")
                + "; insert into postrider.delivery_releases (channel, ordering_key, postponed_at)
                     values ('laws', 'key', now() - interval '61 s')",
        ),
        (Kind::RuleMissing, Nobody, "alter table postrider.deliveries drop constraint deliveries_attempts".to_owned()),
        (Kind::RuleMissing, Nobody, "drop index postrider.deliveries_order".to_owned()),
    ]
}

/// Each kind, made by hand as a bug or a stray hand would make it: found, named, and nothing else with it.
#[tokio::test]
async fn each_kind_of_broken_promise_is_found_and_its_delivery_named() {
    let postgres = postgres().await;
    let database = postgres.database.pool();
    let mut kinds = Vec::new();
    for (kind, broken, statement) in breakages() {
        empty(database).await;
        let ordered = postgres.record(wishes(3, Some("key"))).await;
        let unordered = postgres.record(wishes(1, None)).await[0];
        let missing_before = usize::from(kinds.contains(&FindingKind::RuleMissing));
        assert_eq!(audited(&postgres, &policy(MINUTE)).await.findings.len(), missing_before, "before: {statement}");
        execute(database, &statement).await;
        let Audit { findings, .. } = audited(&postgres, &policy(MINUTE)).await;
        assert_eq!(findings.len(), 1, "{statement}: {findings:#?}");
        let finding = &findings[0];
        let (channel, named) = match broken {
            Broken::Unordered if kind == FindingKind::ChannelNotRegistered => (Some("gone"), vec![unordered]),
            Broken::Unordered => (Some("laws"), vec![unordered]),
            Broken::First => (Some("laws"), vec![ordered[0]]),
            Broken::Second => (Some("laws"), vec![ordered[1]]),
            Broken::Nobody if kind == FindingKind::RuleMissing => (None, Vec::new()),
            Broken::Nobody => (Some("laws"), Vec::new()),
        };
        let named: Vec<_> = named.into_iter().map(DeliveryId::as_uuid).collect();
        // Two that share an ordinal: either of them.
        let examples = if kind == FindingKind::DuplicateOrdinal { named.clone() } else { finding.examples.clone() };
        assert_eq!((finding.kind, finding.channel.as_deref(), examples), (kind, channel, named), "{statement}");
        assert_eq!(finding.found, 1 + missing_before as u64 * u64::from(kind == FindingKind::RuleMissing));
        assert_eq!(finding.rules.is_empty(), kind != FindingKind::RuleMissing);
        kinds.push(kind);
    }
    assert!(FindingKind::ALL.iter().all(|kind| kinds.contains(kind)), "every kind has its breakage");
}

/// What is late only because it could not be claimed before is not late.
#[tokio::test]
async fn what_has_just_been_released_is_not_late_however_long_it_waited_behind_its_key() {
    let postgres = postgres().await;
    postgres.record(wishes(2, Some("key"))).await;
    let head = claim(&postgres).await.remove(0);
    postgres.let_pass(2 * MINUTE).await;
    assert_eq!(end(&postgres, &head, Verdict::Succeeded).await, Settled::Recorded(Status::Succeeded));
    nothing_is_found(&postgres, "the next was due two minutes ago, and is free since now").await;
    let a_minute_ago = "update postrider.delivery_orderings set released_at = now() - interval '61 s';
                        update postrider.deliveries set ready_at = now() - interval '61 s'";
    execute(postgres.database.pool(), a_minute_ago).await;
    let findings = audited(&postgres, &policy(MINUTE)).await.findings;
    assert_eq!(findings.iter().map(|finding| finding.kind).collect::<Vec<_>>(), [FindingKind::Overdue]);
    execute(postgres.database.pool(), "update postrider.delivery_orderings set held_until = now() + interval '1 s'")
        .await;
    nothing_is_found(&postgres, "its key is held").await;
}

#[tokio::test]
async fn a_healthy_queue_has_no_findings_whatever_state_its_deliveries_are_in() {
    let postgres = postgres().await;
    let database = postgres.database.pool();
    nothing_is_found(&postgres, "empty").await;
    postgres.record(wishes(3, Some("key"))).await;
    postgres.record(wishes(3, Some("other key"))).await;
    postgres.record(wishes(6, None)).await;
    nothing_is_found(&postgres, "waiting").await;
    let leases = claim(&postgres).await;
    nothing_is_found(&postgres, "leased").await;
    let (ordered, unordered): (Vec<_>, Vec<_>) =
        leases.into_iter().partition(|lease| lease.delivery.ordering_key.is_some());
    let reason = Reason::Connection;
    for (lease, verdict) in unordered.iter().zip([
        Verdict::Succeeded,
        Verdict::Failed { reason },
        Verdict::Retry { reason, wait: MINUTE },
        Verdict::Defer { reason, wait: MINUTE },
    ]) {
        let _ = end(&postgres, lease, verdict).await;
    }
    assert!(postgres.cancel(unordered[4].delivery.id).await);
    postgres.queue.give_back(&channel().name, &[(unordered[5].delivery.id, unordered[5].token)]).await.unwrap();
    nothing_is_found(&postgres, "succeeded, failed, retried later, deferred, cancelled in mid-attempt, given back")
        .await;
    assert!(postgres.cancel(ordered[0].delivery.id).await);
    nothing_is_found(&postgres, "a key held after a cancel in mid-attempt").await;
    let _ = end(&postgres, &ordered[1], Verdict::Failed { reason }).await;
    nothing_is_found(&postgres, "a failed head").await;
    assert!(postgres.retry(ordered[1].delivery.id).await);
    nothing_is_found(&postgres, "a retried head").await;
    let head = claim(&postgres).await.into_iter().find(|lease| lease.delivery.id == ordered[1].delivery.id).unwrap();
    let mut host = database.begin().await.unwrap();
    let key = head.delivery.ordering_key.as_deref();
    recorder().record(&mut host, &Wished(wishes(1, key))).await.unwrap();
    let _ = end(&postgres, &head, Verdict::Succeeded).await;
    nothing_is_found(&postgres, "a postponed release").await;
    host.commit().await.unwrap();
    nothing_is_found(&postgres, "a postponed release, its host done").await;
    claim(&postgres).await;
    nothing_is_found(&postgres, "a postponed release done").await;
    execute(
        database,
        "update postrider.deliveries set status_since = status_since - interval '60 d' where status <> 'pending'",
    )
    .await;
    postgres.queue.clean_up(&Retention::default()).await.unwrap();
    nothing_is_found(&postgres, "cleaned up").await;
}

/// A key begins anew at ordinal 1 once cleanup has forgotten it. What it left of the key's former life, because somebody
/// held the row just then, is not out of order.
#[tokio::test]
async fn what_is_left_of_a_forgotten_keys_former_life_is_not_out_of_order() {
    let postgres = postgres().await;
    postgres.record(wishes(3, Some("key"))).await;
    for _ in 0..3 {
        let head = claim(&postgres).await.remove(0);
        let _ = end(&postgres, &head, Verdict::Succeeded).await;
    }
    postgres.let_pass(Duration::from_secs(8 * 86_400)).await;
    let mut holder = postgres.database.pool().begin().await.unwrap();
    sqlx::query("select from postrider.deliveries where ordinal = 2 for update").execute(&mut *holder).await.unwrap();
    assert_eq!(postgres.queue.clean_up(&Retention::default()).await.unwrap().deleted, 2);
    holder.rollback().await.unwrap();
    let again = postgres.record(wishes(1, Some("key"))).await;
    assert_eq!(claim(&postgres).await[0].delivery.id, again[0]);
    nothing_is_found(&postgres, "ordinal 2 of before succeeded, the new 1 is being attempted").await;
}

/// An audit says so where it looked at a part only.
#[tokio::test]
async fn an_audit_that_looked_at_a_part_only_says_so() {
    let postgres = postgres().await;
    postgres.record(wishes(10, None)).await;
    postgres.let_pass(2 * MINUTE).await;
    let part = AuditPolicy { rows: NonZeroU32::new(4).unwrap(), ..policy(MINUTE) };
    let audit = audited(&postgres, &part).await;
    assert_eq!((audit.findings[0].found, audit.findings[0].more), (4, true));
    assert!(audit.looked.iter().any(|looked| looked.count == 4 && looked.part), "{audit:#?}");
    let whole = audited(&postgres, &policy(MINUTE)).await;
    assert_eq!((whole.findings[0].found, whole.findings[0].more), (10, false));
    assert_eq!(whole.findings[0].examples.len(), 5);
    assert!(whole.looked.iter().all(|looked| !looked.part), "{whole:#?}");
}

/// It may run as somebody who can only read, and in the middle of anything.
#[tokio::test]
async fn an_audit_writes_nothing_and_waits_for_nobody() {
    let postgres = postgres().await;
    postgres.record(wishes(2, Some("key"))).await;
    let mut everything = postgres.database.pool().begin().await.unwrap();
    for lock in ["deliveries", "delivery_orderings", "delivery_releases"] {
        let lock = format!("lock table postrider.{lock} in exclusive mode");
        sqlx::query(AssertSqlSafe(lock)).execute(&mut *everything).await.unwrap();
    }
    let mut connection = postgres.database.connect().await;
    execute_on(&mut connection, "set default_transaction_read_only = on").await;
    let audit = audit(&mut connection, &policy(MINUTE), Duration::from_secs(10)).await.unwrap();
    assert_eq!(audit.findings, []);
    let after = "select current_setting('enable_seqscan')";
    let setting: String = sqlx::query_scalar(after).fetch_one(&mut connection).await.unwrap();
    assert_eq!(setting, "on", "its settings end with it");
}

/// The gauge's audits are published by kind; one that fails leaves no number, and the time of the last that did not.
#[tokio::test]
async fn audits_are_published_and_a_failed_one_leaves_no_number() {
    let recorder = metrics_exporter_prometheus::PrometheusBuilder::new().build_recorder();
    let shown = recorder.handle();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let postgres = postgres().await;
    let database = postgres.database.pool();
    postgres.record(wishes(3, Some("key"))).await;
    execute(database, "update postrider.delivery_orderings set unfinished = 7").await;
    let soon = Duration::from_millis(20);
    let config = EngineConfig { gauge_interval: soon, audit_interval: soon, ..EngineConfig::default() };
    let engine = Engine::start(postgres.queue(), Vec::new(), config, None).await.unwrap();
    let shows = async |line: &str| {
        eventually(MINUTE, line, async || shown.render().lines().any(|shown| shown == line)).await;
    };
    shows("postrider_audit_findings{kind=\"key_miscounted\"} 1").await;
    shows("postrider_audit_findings{kind=\"out_of_order\"} 0").await;
    // Counting goes on; only the audit reads this table.
    execute(database, "alter table postrider.delivery_releases rename column postponed_at to gone").await;
    for kind in FindingKind::ALL {
        shows(&format!("postrider_audit_findings{{kind=\"{kind}\"}} NaN")).await;
    }
    let last = "postrider_audit_last_success_timestamp_seconds 1";
    assert!(shown.render().contains(last), "kept: {}", shown.render());
    assert!(engine.health().actors.iter().all(|actor| actor.state == ActorState::Running), "no state of the queue");
    execute(database, "alter table postrider.delivery_releases rename column gone to postponed_at").await;
    execute(database, "update postrider.delivery_orderings set unfinished = 3").await;
    shows("postrider_audit_findings{kind=\"key_miscounted\"} 0").await;
    engine.shut_down().await;
}

async fn execute_on(connection: &mut PgConnection, statement: &'static str) {
    sqlx::query(statement).execute(connection).await.unwrap();
}

const AUDITS: usize = 60;
const ATTEMPTS: u64 = 300;

/// Hosts, workers, operators and cleanup as fast as they can, and no audit in between finds anything.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_busy_queue_has_no_findings_at_any_moment() {
    let postgres = Arc::new(postgres().await);
    let people = pool(postgres.database.options());
    let (over, done) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let mut tasks = Vec::new();
    for host in 0..2u64 {
        let (people, over) = (people.clone(), Arc::clone(&over));
        tasks.push(tokio::spawn(async move {
            let mut turn = host;
            while !over.load(Ordering::Relaxed) {
                turn += 1;
                let keys = [None, Some(turn % 7), Some((turn + host) % 3)];
                let wish = |key: &Option<u64>| Wish {
                    channel: channel().name,
                    ordering_key: key.map(|key| format!("k{key}")),
                };
                let mut transaction = people.begin().await.unwrap();
                recorder().record(&mut transaction, &Wished(keys.iter().map(wish).collect())).await.unwrap();
                tokio::task::yield_now().await;
                if turn % 9 == 0 { transaction.rollback().await.unwrap() } else { transaction.commit().await.unwrap() }
            }
        }));
    }
    for worker in 0..2u64 {
        let (postgres, over, done) = (Arc::clone(&postgres), Arc::clone(&over), Arc::clone(&done));
        tasks.push(tokio::spawn(async move {
            let (reason, wait) = (Reason::Connection, Duration::from_millis(1));
            let mut turn = worker;
            while !over.load(Ordering::Relaxed) {
                for lease in claim(&postgres).await {
                    turn += 1;
                    let verdict = match turn % 11 {
                        0 => Verdict::Failed { reason },
                        1 | 2 => Verdict::Retry { reason, wait },
                        3 => Verdict::Defer { reason, wait },
                        _ => Verdict::Succeeded,
                    };
                    if turn % 13 == 0 {
                        postgres.queue.give_back(&channel().name, &[(lease.delivery.id, lease.token)]).await.unwrap();
                    } else {
                        let _ = end(&postgres, &lease, verdict).await;
                    }
                    done.fetch_add(1, Ordering::Relaxed);
                }
            }
        }));
    }
    {
        let (people, over) = (people.clone(), Arc::clone(&over));
        tasks.push(tokio::spawn(async move {
            let some = "select id from postrider.deliveries where status in ('failed', 'pending') limit 20";
            while !over.load(Ordering::Relaxed) {
                let mut connection = people.acquire().await.unwrap();
                let ids: Vec<uuid::Uuid> = sqlx::query_scalar(some).fetch_all(&mut *connection).await.unwrap();
                for (nth, id) in ids.into_iter().map(DeliveryId::from_uuid).enumerate() {
                    let wished = match nth % 3 {
                        0 => queue::cancel(&mut connection, id, &operator()).await,
                        _ => queue::retry(&mut connection, id, &operator()).await,
                    };
                    assert!(!matches!(wished, Err(OperateError::Database(_))), "{wished:?}");
                }
            }
        }));
    }
    {
        let (postgres, over) = (Arc::clone(&postgres), Arc::clone(&over));
        let soon = Duration::from_millis(100);
        let retention = Retention { succeeded: soon, failed: soon };
        tasks.push(tokio::spawn(async move {
            while !over.load(Ordering::Relaxed) {
                postgres.queue.clean_up(&retention).await.unwrap();
            }
        }));
    }
    let mut audits = 0;
    eventually(2 * MINUTE, "many audits of a busy queue", async || {
        let audit = audited(&postgres, &policy(Duration::from_secs(20))).await;
        assert_eq!(audit.findings, [], "audit {audits}");
        audits += 1;
        audits >= AUDITS && done.load(Ordering::Relaxed) >= ATTEMPTS
    })
    .await;
    over.store(true, Ordering::Relaxed);
    for task in tasks {
        task.await.unwrap();
    }
}
