//! What holds while a host's transaction is open.

use std::time::Duration;

use postrider::queue;
use postrider_actors::laws::{Harness, channel, wishes};
use postrider_actors::{DeliveryId, Ended, Lease, Queue, Search, Settled, Status, Verdict};
use sqlx::PgConnection;

use crate::harness::{Postgres, Wished, operator, postgres, recorder};
use crate::support::eventually;

const SOON: Duration = Duration::from_secs(10);

async fn record(connection: &mut PgConnection, count: usize, key: Option<&str>) -> Vec<DeliveryId> {
    recorder().record(connection, &Wished(wishes(count, key))).await.unwrap().deliveries
}

async fn claim(postgres: &Postgres) -> Vec<Lease> {
    postgres.queue.claim(&channel().name, 10.try_into().unwrap(), Duration::from_secs(60), Search::All).await.unwrap()
}

async fn succeed(postgres: &Postgres, lease: &Lease) -> Settled {
    let (delivery, token) = (lease.delivery.id, lease.token);
    let ordered = lease.delivery.ordering_key.is_some();
    let ended = Ended { delivery, token, ordered, verdict: Verdict::Succeeded, effect: None };
    postgres.queue.record(&channel(), &[ended]).await.unwrap().settled[0]
}

async fn begin(postgres: &Postgres) -> sqlx::Transaction<'static, sqlx::Postgres> {
    postgres.database.pool().begin().await.unwrap()
}

#[tokio::test]
async fn created_with_the_event_commit_all_of_them_roll_back_none() {
    let postgres = postgres().await;
    let mut kept = begin(&postgres).await;
    let committed = record(&mut kept, 3, None).await;
    let mut dropped = begin(&postgres).await;
    let rolled_back = record(&mut dropped, 3, Some("key")).await;
    assert_eq!(claim(&postgres).await, [], "nothing before the commit");
    kept.commit().await.unwrap();
    dropped.rollback().await.unwrap();

    let count = "select (select count(*) from postrider.events), (select count(*) from postrider.deliveries),
                        (select count(*) from postrider.delivery_orderings)";
    let counts: (i64, i64, i64) = sqlx::query_as(count).fetch_one(postgres.database.pool()).await.unwrap();
    assert_eq!(counts, (1, 3, 0));
    let mut claimed: Vec<_> = claim(&postgres).await.into_iter().map(|lease| lease.delivery.id).collect();
    claimed.sort();
    assert_eq!(claimed, committed);
    assert!(postgres.look(rolled_back[0]).await.is_none());
}

/// Two transactions on one key: the second waits for the first, so that ordinals are drawn in commit order, though the
/// first began, recorded and got its ids long before.
#[tokio::test]
async fn ordered_per_key_in_commit_order_whatever_any_clock_says() {
    let postgres = postgres().await;
    let mut first = begin(&postgres).await;
    let mut second = begin(&postgres).await;
    // The second transaction is the older one by its own clock and by its other rows.
    record(&mut second, 1, None).await;
    let one = record(&mut first, 1, Some("key")).await[0];
    let waiting = tokio::spawn(async move {
        let two = record(&mut second, 1, Some("key")).await[0];
        second.commit().await.unwrap();
        two
    });
    eventually(SOON, "the second waits for the first", async || {
        let waits = "select exists (select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock')";
        sqlx::query_scalar(waits).fetch_one(postgres.database.pool()).await.unwrap()
    })
    .await;
    assert!(!waiting.is_finished());
    first.commit().await.unwrap();
    let two = waiting.await.unwrap();

    let leases = claim(&postgres).await;
    let head = leases.iter().find(|lease| lease.delivery.ordering_key.is_some()).unwrap();
    assert_eq!(head.delivery.id, one);
    assert!(leases.iter().all(|lease| lease.delivery.id != two));
    assert_eq!(succeed(&postgres, head).await, Settled::Recorded(Status::Succeeded));
    assert_eq!(claim(&postgres).await[0].delivery.id, two);
}

#[tokio::test]
async fn c34_what_commits_late_is_claimed_all_the_same_and_gaps_stall_nothing() {
    let postgres = postgres().await;
    let mut late = begin(&postgres).await;
    let early_id = record(&mut late, 1, None).await[0];
    let mut never = begin(&postgres).await;
    record(&mut never, 1, None).await;
    let later_id = postgres.record(wishes(1, None)).await[0];
    assert_eq!(claim(&postgres).await[0].delivery.id, later_id);
    never.rollback().await.unwrap();
    late.commit().await.unwrap();
    assert_eq!(claim(&postgres).await[0].delivery.id, early_id);
}

/// A host may hold a key's row for as long as its transaction is open. An outcome is recorded all the same, and the
/// key goes on as soon as the host is done, whichever way.
#[tokio::test]
async fn an_outcome_never_waits_for_a_hosts_open_transaction() {
    for commits in [true, false] {
        let postgres = postgres().await;
        postgres.record(wishes(2, Some("key"))).await;
        let head = claim(&postgres).await.remove(0);
        let mut host = begin(&postgres).await;
        let inserted = record(&mut host, 1, Some("key")).await[0];

        let settled = tokio::time::timeout(SOON, succeed(&postgres, &head)).await.expect("does not wait");
        assert_eq!(settled, Settled::Recorded(Status::Succeeded));
        assert_eq!(claim(&postgres).await, [], "the key is held by the host's transaction");
        if commits {
            host.commit().await.unwrap()
        } else {
            host.rollback().await.unwrap()
        };

        let mut order = Vec::new();
        while let Some(next) = claim(&postgres).await.into_iter().next() {
            assert_eq!(succeed(&postgres, &next).await, Settled::Recorded(Status::Succeeded));
            order.push(next.delivery.id);
        }
        assert_eq!(order.len(), if commits { 2 } else { 1 });
        assert_eq!(order.contains(&inserted), commits);
        let left: i64 = sqlx::query_scalar("select count(*) from postrider.delivery_releases")
            .fetch_one(postgres.database.pool())
            .await
            .unwrap();
        assert_eq!(left, 0);
        // The key's books balance: what is recorded now is claimable at once.
        let next = postgres.record(wishes(1, Some("key"))).await[0];
        assert_eq!(claim(&postgres).await[0].delivery.id, next);
    }
}

/// An operator's cancel does not wait for the host either, and keeps the hold of the lease that it ended.
#[tokio::test]
async fn a_cancel_in_mid_attempt_while_a_host_holds_the_key_still_waits_for_the_lease() {
    let postgres = postgres().await;
    let recorded = postgres.record(wishes(2, Some("key"))).await;
    assert_eq!(claim(&postgres).await[0].delivery.id, recorded[0]);
    let mut host = begin(&postgres).await;
    record(&mut host, 1, Some("key")).await;
    let mut connection = postgres.database.connect().await;
    let by = operator();
    let cancel = queue::cancel(&mut connection, recorded[0], &by);
    tokio::time::timeout(SOON, cancel).await.expect("does not wait").unwrap();
    host.commit().await.unwrap();
    postgres.let_pass(Duration::from_secs(30)).await;
    // Another process finds the postponed release by looking.
    let other = postrider::queue::PgQueue::new(postgres.queue.pool().clone());
    let leases =
        other.claim(&channel().name, 10.try_into().unwrap(), Duration::from_secs(60), Search::All).await.unwrap();
    assert_eq!(leases, [], "its lease has half a minute to go");
    postgres.let_pass(Duration::from_secs(30)).await;
    assert_eq!(claim(&postgres).await[0].delivery.id, recorded[1]);
}

#[tokio::test]
async fn a_cleanup_skips_a_key_whose_next_delivery_is_being_inserted() {
    let postgres = postgres().await;
    let recorded = postgres.record(wishes(2, Some("key"))).await;
    let head = claim(&postgres).await.remove(0);
    let verdict = Verdict::Failed { reason: postrider_actors::Reason::Connection };
    let (delivery, token) = (head.delivery.id, head.token);
    let failed = Ended { delivery, token, ordered: true, verdict, effect: None };
    postgres.queue.record(&channel(), &[failed]).await.unwrap();
    postgres.let_pass(Duration::from_secs(31 * 86_400)).await;

    let mut host = begin(&postgres).await;
    record(&mut host, 1, Some("key")).await;
    let retention = postrider_actors::Retention::default();
    let cleaned = tokio::time::timeout(SOON, postgres.queue.clean_up(&retention)).await.expect("does not wait");
    assert_eq!(cleaned.unwrap().abandoned_keys, 0);
    assert!(postgres.look(recorded[0]).await.is_some());
    host.commit().await.unwrap();
    let cleaned = postgres.queue.clean_up(&retention).await.unwrap();
    assert_eq!((cleaned.abandoned_keys, cleaned.cancelled), (1, 2));
}

/// Time is the database's, at the statement: a transaction that has been open for long neither makes what it records
/// older than it is nor claims less than is due.
#[tokio::test]
async fn c36_times_are_the_databases_at_the_statement_not_at_the_start_of_its_transaction() {
    let postgres = postgres().await;
    let mut host = begin(&postgres).await;
    let started: chrono::DateTime<chrono::Utc> =
        sqlx::query_scalar("select now()").fetch_one(&mut *host).await.unwrap();
    let later = postgres.record(wishes(1, None)).await[0];
    let recorded = record(&mut host, 1, None).await[0];
    host.commit().await.unwrap();
    let mut connection = postgres.database.connect().await;
    let first = queue::get(&mut connection, later).await.unwrap().unwrap();
    let second = queue::get(&mut connection, recorded).await.unwrap().unwrap();
    assert!(started < first.status_since && first.status_since < second.status_since);
    assert_eq!(second.due_at, Some(second.status_since));
}

#[tokio::test]
async fn a_claim_never_waits_for_a_row_that_somebody_holds() {
    let postgres = postgres().await;
    let held = postgres.record(wishes(1, None)).await[0];
    let free = postgres.record(wishes(1, None)).await[0];
    let mut holder = begin(&postgres).await;
    let lock = "select from postrider.deliveries where id = $1 for update";
    sqlx::query(lock).bind(held.as_uuid()).execute(&mut *holder).await.unwrap();
    let leases = tokio::time::timeout(SOON, claim(&postgres)).await.expect("does not wait");
    assert_eq!(leases.iter().map(|lease| lease.delivery.id).collect::<Vec<_>>(), [free]);
    holder.rollback().await.unwrap();
    assert_eq!(claim(&postgres).await[0].delivery.id, held);
}

/// A process that is frozen in the middle of a transaction must not hold up a host for longer than a call may take.
#[tokio::test]
async fn a_process_frozen_inside_a_transaction_gives_its_locks_up() {
    let postgres = postgres().await;
    postgres.record(wishes(1, Some("key"))).await;
    let mut frozen = queue::connect(&postgres.database.options(), Duration::from_secs(1)).await.unwrap();
    sqlx::raw_sql("begin; select from postrider.delivery_orderings for update").execute(&mut frozen).await.unwrap();
    // It does not go on; the host comes.
    let mut host = begin(&postgres).await;
    let recorded = tokio::time::timeout(SOON, record(&mut host, 1, Some("key"))).await.expect("not held up");
    host.commit().await.unwrap();
    assert!(postgres.look(recorded[0]).await.is_some());
}

/// A key costs nothing for ever: it goes with its last delivery, unless something of it is unfinished or held.
#[tokio::test]
async fn a_key_is_forgotten_with_its_last_delivery_and_begins_anew() {
    let postgres = postgres().await;
    let ids = postgres.record(wishes(2, Some("key"))).await;
    let head = claim(&postgres).await.remove(0);
    assert_eq!(succeed(&postgres, &head).await, Settled::Recorded(Status::Succeeded));
    let retention = postrider_actors::Retention::default();
    let keys = async || {
        let count = "select count(*) from postrider.delivery_orderings";
        sqlx::query_scalar::<_, i64>(count).fetch_one(postgres.database.pool()).await.unwrap()
    };
    postgres.let_pass(Duration::from_secs(8 * 86_400)).await;
    assert_eq!(postgres.queue.clean_up(&retention).await.unwrap().deleted, 1);
    assert_eq!(keys().await, 1, "one waits");
    let next = claim(&postgres).await.remove(0);
    assert_eq!(next.delivery.id, ids[1]);
    assert_eq!(succeed(&postgres, &next).await, Settled::Recorded(Status::Succeeded));
    postgres.let_pass(Duration::from_secs(8 * 86_400)).await;
    assert_eq!(postgres.queue.clean_up(&retention).await.unwrap().deleted, 1);
    assert_eq!(keys().await, 0);
    let again = postgres.record(wishes(2, Some("key"))).await;
    assert_eq!(claim(&postgres).await.iter().map(|lease| lease.delivery.id).collect::<Vec<_>>(), again[..1]);
}
