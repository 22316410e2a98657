//! The plans of the product's own statements on a large table: no scan, no sort, nothing walked in vain.
//!
//! PostgreSQL's auto_explain sends the plan of each statement that the product runs, as it ran.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use postrider::queue::{self, Listing, PgQueue};
use postrider_actors::laws::{Harness, channel, wishes};
use postrider_actors::{AuditPolicy, Ended, Queue, Retention, Search, Status, Verdict};
use serde_json::Value;
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, PgConnection};
use tracing::field::{Field, Visit};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

use crate::harness::{Postgres, pool, postgres};

/// Plans as the server sent them.
#[derive(Clone, Default)]
pub struct Plans(Arc<Mutex<Vec<Value>>>);

impl<S: tracing::Subscriber> Layer<S> for Plans {
    fn on_event(&self, event: &tracing::Event<'_>, _context: Context<'_, S>) {
        struct Message(String);
        impl Visit for Message {
            fn record_str(&mut self, field: &Field, value: &str) {
                if field.name() == "message" {
                    self.0 = value.to_owned();
                }
            }

            fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
                if field.name() == "message" {
                    self.0 = format!("{value:?}");
                }
            }
        }
        if event.metadata().target().starts_with("sqlx::postgres::notice") {
            let mut message = Message(String::new());
            event.record(&mut message);
            if let Some(start) = message.0.find('{') {
                self.0.lock().unwrap().push(serde_json::from_str(&message.0[start..]).unwrap());
            }
        }
    }
}

impl Plans {
    pub fn take(&self) -> Vec<Value> {
        let plans = std::mem::take(&mut *self.0.lock().unwrap());
        assert!(!plans.is_empty(), "auto_explain sent no plan");
        plans
    }
}

/// Every node of a plan.
fn nodes(plan: &Value) -> Vec<&Value> {
    let mut found = vec![plan];
    for child in plan["Plans"].as_array().into_iter().flatten() {
        found.extend(nodes(child));
    }
    found
}

/// The plan neither scans the table of deliveries nor sorts, and no scan of it throws rows away.
pub fn walks_only_what_it_needs(plans: &[Value]) {
    walks_in_vain_at_most(0, plans);
}

fn walks_in_vain_at_most(allowed: u64, plans: &[Value]) {
    for plan in plans {
        for node in nodes(&plan["Plan"]) {
            let kind = node["Node Type"].as_str().unwrap();
            let of_deliveries = node["Relation Name"] == "deliveries";
            assert!(!(of_deliveries && kind == "Seq Scan"), "scans the table: {plan:#}");
            assert!(!kind.contains("Sort"), "sorts: {plan:#}");
            let thrown_away = node["Rows Removed by Filter"].as_u64().unwrap_or(0);
            assert!(!of_deliveries || thrown_away <= allowed, "walks {thrown_away} rows in vain: {plan:#}");
        }
    }
}

/// A queue whose statements' plans are kept.
pub struct Explained {
    pub postgres: Postgres,
    explained: PgConnectOptions,
    pub queue: PgQueue,
    pub plans: Plans,
    _subscriber: tracing::subscriber::DefaultGuard,
}

/// 20,000 succeeded, 2,000 failed and cancelled, 20,000 behind one key, 20,000 not yet due, 2,000 leased, 500 due.
async fn large() -> Explained {
    let postgres = postgres().await;
    fill(&postgres).await;
    // Nothing is known to be visible to all before its commit is flushed.
    sqlx::raw_sql("checkpoint").execute(postgres.database.pool()).await.unwrap();
    sqlx::raw_sql("vacuum analyze").execute(postgres.database.pool()).await.unwrap();
    explained(postgres)
}

async fn fill(postgres: &Postgres) {
    let fill = "
        insert into postrider.delivery_orderings (channel, ordering_key, last_ordinal, unfinished) values ('laws', 'long', 20000, 20000);
        insert into postrider.deliveries (id, event_id, channel, owner, destination, payload, status, status_since, claimable, due_at, ready_at, claim_token, attempt, ordering_key, ordinal)
        select gen_random_uuid(), gen_random_uuid(), case n % 4 when 0 then 'other' else 'laws' end, 'owner', 'destination', jsonb_build_object('body', repeat(md5(n::text), 10)), status,
               now() - n * interval '1 second', not waits, now() + due, now() + case when leased then '-1 minute' else due end, case when leased then gen_random_uuid() end, 1,
               case when waits then 'long' end, case when waits then n end
          from (select n, 'succeeded' as status, false as waits, false as leased, interval '0' as due from generate_series(1, 20000) n
                union all select n, case n % 2 when 0 then 'failed' else 'cancelled' end, false, false, '0' from generate_series(1, 2000) n
                union all select n * 4 + 1, 'pending', true, false, '0' from generate_series(1, 20000) n
                union all select n, 'pending', false, false, '1 hour' from generate_series(1, 20000) n
                union all select n, 'pending', false, true, '1 minute' from generate_series(1, 2000) n
                union all select n, 'pending', false, false, n * interval '-1 second' from generate_series(1, 500) n) rows;";
    sqlx::raw_sql(fill).execute(postgres.database.pool()).await.unwrap();
}

pub fn explained(postgres: Postgres) -> Explained {
    let explained = postgres.database.options().options([
        ("session_preload_libraries", "auto_explain"),
        ("auto_explain.log_min_duration", "0"),
        ("auto_explain.log_analyze", "on"),
        ("auto_explain.log_buffers", "on"),
        ("auto_explain.log_format", "json"),
        ("auto_explain.log_level", "notice"),
        ("client_min_messages", "notice"),
    ]);
    let plans = Plans::default();
    let subscriber = tracing_subscriber::registry().with(plans.clone()).set_default();
    Explained { queue: PgQueue::new(pool(explained.clone())), explained, postgres, plans, _subscriber: subscriber }
}

impl Explained {
    async fn connect(&self) -> PgConnection {
        self.explained.connect().await.unwrap()
    }
}

#[tokio::test]
async fn a_claim_walks_and_locks_only_the_rows_that_it_returns() {
    let large = large().await;
    for round in 0..3 {
        let slots = 100.try_into().unwrap();
        // A search of all also walks what is being attempted; one ahead begins at the last that was claimed.
        let search = if round == 0 { Search::All } else { Search::Ahead };
        let leases = large.queue.claim(&channel().name, slots, Duration::from_secs(60), search).await.unwrap();
        assert_eq!(leases.len(), 100);
        let plans = large.plans.take();
        walks_in_vain_at_most(u64::from(round > 0), &plans);
        let nodes: Vec<&Value> = plans.iter().flat_map(|plan| nodes(&plan["Plan"])).collect();
        let locked: Vec<_> = nodes.iter().filter(|node| node["Node Type"] == "LockRows").collect();
        assert_eq!(locked.len(), 1);
        assert_eq!(locked[0]["Actual Rows"].as_f64(), Some(100.0), "no row is locked but those returned");
        let index = nodes.iter().find(|node| node["Index Name"] == "deliveries_due").expect("by the due index");
        let walked = index["Actual Rows"].as_f64().unwrap();
        // What the last round claimed has dead entries in front; they are not rows.
        assert!(walked <= 100.0 + 2.0, "round {round}: walked {walked}");
    }
}

#[tokio::test]
async fn a_claim_that_finds_nothing_walks_nothing() {
    let large = large().await;
    let quiet = postrider_actors::laws::channel_named("quiet").name;
    let slots = 100.try_into().unwrap();
    assert!(large.queue.claim(&quiet, slots, Duration::from_secs(60), Search::All).await.unwrap().is_empty());
    walks_only_what_it_needs(&large.plans.take());
}

#[tokio::test]
async fn a_recording_looks_up_each_row_by_its_key() {
    let large = large().await;
    large.postgres.record(wishes(50, None)).await;
    for ordered in [false, true] {
        if ordered {
            sqlx::query("update postrider.deliveries set due_at = now() + interval '1 hour', ready_at = now() + interval '1 hour' where due_at < now() and claim_token is null and ordering_key is null")
                .execute(large.postgres.database.pool())
                .await
                .unwrap();
            large.postgres.record(wishes(3, Some("short"))).await;
        }
        let slots = 50.try_into().unwrap();
        let leases = large.queue.claim(&channel().name, slots, Duration::from_secs(60), Search::All).await.unwrap();
        assert!(leases.iter().all(|lease| lease.delivery.ordering_key.is_some() == ordered));
        large.plans.take();
        let ended: Vec<_> = leases
            .iter()
            .map(|lease| {
                let (delivery, token) = (lease.delivery.id, lease.token);
                Ended { delivery, token, ordered, verdict: Verdict::Succeeded, effect: None }
            })
            .collect();
        let recorded = large.queue.record(&channel(), &ended).await.unwrap();
        assert_eq!(recorded.settled.len(), leases.len());
        assert_eq!(recorded.released, usize::from(ordered));
        let plans = large.plans.take();
        // The outcome, the key, the next of the key; and that in one transaction.
        assert_eq!(plans.len(), if ordered { 3 } else { 1 }, "statements of one recording");
        walks_only_what_it_needs(&plans);
    }
}

#[tokio::test]
async fn a_listing_reads_in_the_order_of_the_index_and_no_further_than_its_limit() {
    let large = large().await;
    let mut connection = large.connect().await;
    for status in [None, Some(Status::Failed), Some(Status::Pending), Some(Status::Succeeded)] {
        for channel in [None, Some(channel().name)] {
            let listing = Listing { status, channel: channel.clone(), limit: 20 };
            let rows = queue::list(&mut connection, &listing).await.unwrap();
            assert_eq!(rows.len(), 20);
            assert!(rows.is_sorted_by(|one, next| one.status_since >= next.status_since), "latest first");
            assert!(status.is_none_or(|status| rows.iter().all(|row| row.status == status.as_str())));
            assert!(channel.is_none_or(|channel| rows.iter().all(|row| row.channel == channel.as_str())));
            walks_only_what_it_needs(&large.plans.take());
        }
    }
}

#[tokio::test]
async fn counting_and_cleanup_go_through_an_index() {
    let large = large().await;
    let channels = [channel().name, postrider_actors::laws::channel_named("other").name];
    let counts = large.queue.count_pending(&channels).await.unwrap();
    assert_eq!(counts.iter().map(|count| count.pending).sum::<u64>(), 42_500);
    walks_only_what_it_needs(&large.plans.take());
    let cleaned = large.queue.clean_up(&Retention::default()).await.unwrap();
    assert_eq!(cleaned.deleted, 0);
    // An age that nothing has is looked up and sorted over no row at all.
    for plan in large.plans.take() {
        for node in nodes(&plan["Plan"]) {
            assert!(!(node["Relation Name"] == "deliveries" && node["Node Type"] == "Seq Scan"), "scans: {plan:#}");
        }
    }
}

/// Ten of each: what there is beyond is not read, whatever there is of it.
#[tokio::test]
async fn an_audit_walks_indexes_and_no_more_of_them_than_it_was_allowed() {
    let large = large().await;
    let mut connection = large.connect().await;
    let (channels, older_than, rows) = (vec![channel()], Duration::from_secs(60), 10.try_into().unwrap());
    let policy = AuditPolicy { channels, older_than, rows };
    let audit = queue::audit::audit(&mut connection, &policy, Duration::from_secs(10)).await.unwrap();
    assert!(audit.looked.iter().any(|looked| looked.count == 10 && looked.part), "{audit:#?}");
    for plan in large.plans.take() {
        let mut walked = 0.0;
        for node in nodes(&plan["Plan"]) {
            let kind = node["Node Type"].as_str().unwrap();
            assert!(!(node["Relation Name"] == "deliveries" && kind == "Seq Scan"), "scans the table: {plan:#}");
            if node["Relation Name"] == "deliveries" {
                let rows =
                    node["Actual Rows"].as_f64().unwrap() + node["Rows Removed by Filter"].as_f64().unwrap_or(0.0);
                walked += rows * node["Actual Loops"].as_f64().unwrap();
            }
        }
        // Two channels; the one key is counted up to a hundred.
        assert!(walked <= 150.0, "walked {walked}: {plan:#}");
    }
}

/// Plans are kept by a session. One that was made while the table was empty must not be used once it is full.
#[tokio::test]
async fn a_session_that_knew_the_table_empty_claims_by_the_index_when_it_is_full() {
    let postgres = postgres().await;
    sqlx::raw_sql("vacuum analyze").execute(postgres.database.pool()).await.unwrap();
    let large = explained(postgres);
    let claim = async || {
        let slots = 100.try_into().unwrap();
        large.queue.claim(&channel().name, slots, Duration::from_secs(60), Search::All).await.unwrap()
    };
    for _ in 0..12 {
        assert!(claim().await.is_empty());
    }
    fill(&large.postgres).await;
    large.plans.take();
    assert_eq!(claim().await.len(), 100);
    walks_only_what_it_needs(&large.plans.take());
}
