//! One run: hosts record, replicas deliver, everything breaks; then nothing breaks any more, and the rest must drain.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use sqlx::PgConnection;
use sqlx::postgres::PgConnectOptions;
use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::ca::Ca;
use crate::clock::Clock;
use crate::cluster::Cluster;
use crate::fleet::Fleet;
use crate::hosts::Host;
use crate::journal::Transition;
use crate::nemesis::{World, keep_replicas_running, storm};
use crate::operator::Desk;
use crate::proxy::Proxy;
use crate::receiver::Receiver;
use crate::record::Log;
use crate::report::Summary;
use crate::scratch::Scratch;
use crate::settings::{BACKOFF_CAP, LEASE, Size};
use crate::worker_log::Line;
use crate::{gaps, journal, judge, worker_log};

/// For a busy machine, and for keys that must be worked off one by one.
const MARGIN: Duration = Duration::from_secs(20);

pub fn run(test: &'static str) {
    let size = Size::from_environment();
    println!("seed {}: the same script again with `make chaos SEED={}`", size.seed, size.seed);
    let scratch = Scratch::new();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(judged(test, size, &scratch));
}

async fn judged(test: &'static str, size: Size, scratch: &Scratch) {
    let (ca, clock, log) = (Ca::new(), Clock::start(), Arc::new(Log::default()));
    let cluster = Cluster::start(&scratch.path().join("db"), &[]).await;
    cluster.create_database().await;
    let mut connection = cluster.connect().await;
    postrider::migrate(&mut connection).await.unwrap();
    journal::attach(&mut connection).await;
    let mut proxies = Vec::new();
    for _ in 0..size.replicas {
        proxies.push(Proxy::start(cluster.socket()).await);
    }
    let hosts = Proxy::start(cluster.socket()).await;
    let receiver = Receiver::start(&ca, clock, size.seed, &scratch.path().join("received.jsonl")).await;
    let fleet = Fleet::start(test, ca.path().to_owned(), scratch.path().to_owned(), clock, proxies).await;
    let cluster = Mutex::new(cluster);
    let to_end = std::sync::Mutex::default();
    let world =
        Arc::new(World { size: size.clone(), clock, log: Arc::clone(&log), cluster, fleet, hosts, receiver, to_end });

    let (storm_over, run_over) = (CancellationToken::new(), CancellationToken::new());
    let mut tasks = JoinSet::new();
    tasks.spawn(keep_replicas_running(Arc::clone(&world), run_over.clone()));
    let through_proxy: PgConnectOptions = world.hosts.url().parse().unwrap();
    let mut recording = JoinSet::new();
    let places = Arc::new(AtomicU64::new(0));
    for number in 0..size.hosts {
        let host = Host {
            number,
            options: through_proxy.clone(),
            destination: world.receiver.url(),
            clock,
            places: Arc::clone(&places),
            log: Arc::clone(&log),
        };
        recording.spawn(host.run(size.clone()));
    }
    let desk = Desk { options: through_proxy.clone(), clock, log: Arc::clone(&log) };
    let (desk_over, seed) = (storm_over.clone(), size.seed);
    let working = tokio::spawn(async move { desk.work(seed, desk_over).await });
    let over = storm_over.clone();
    let (stop_at, stopper) = (size.storm, tokio::spawn(async move { while recording.join_next().await.is_some() {} }));
    let ends = async {
        tokio::time::sleep(stop_at).await;
        stopper.await.unwrap();
        over.cancel();
    };
    tokio::join!(storm(&world, &storm_over), ends);
    working.await.unwrap();

    // Nothing breaks any more.
    world.receiver.only_success();
    let mut connection = world.cluster.lock().await.connect().await;
    let drained = drain(&log, clock, through_proxy, &mut connection).await;
    run_over.cancel();
    while let Some(ended) = tasks.join_next().await {
        ended.unwrap();
    }
    let evidence = evidence(size, &log, &world.fleet, &world.receiver, &mut connection, drained).await;
    let missing = evidence.summary.missing();
    evidence.judged(scratch);
    assert!(missing.is_empty(), "a run without these proves nothing: {missing:?}");
}

/// Waits until nothing is pending and nothing has failed: what failed is retried. How long it took, and may take.
pub async fn drain(
    log: &Arc<Log>,
    clock: Clock,
    options: PgConnectOptions,
    connection: &mut PgConnection,
) -> (Duration, Duration) {
    let desk = Desk { options, clock, log: Arc::clone(log) };
    let (from, deadline) = (clock.now(), longest_wait(connection).await + LEASE + BACKOFF_CAP + MARGIN);
    loop {
        let failed = desk.retry_all_failed().await;
        let pending: i64 = sqlx::query_scalar("select count(*) from postrider.deliveries where status = 'pending'")
            .fetch_one(&mut *connection)
            .await
            .unwrap();
        // What has not drained by then the checker tells one by one.
        if (pending == 0 && failed == 0) || clock.now() - from > deadline {
            return (clock.now() - from, deadline);
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Until the last lease and the last wait that stand now are over: a lease over one that ran out is longer.
async fn longest_wait(connection: &mut PgConnection) -> Duration {
    let seconds: f64 = sqlx::query_scalar(
        "select coalesce(greatest(max(extract(epoch from due_at - statement_timestamp())), 0), 0)::float8
           from postrider.deliveries
          where status = 'pending'",
    )
    .fetch_one(connection)
    .await
    .unwrap();
    Duration::from_secs_f64(seconds)
}

/// All that was seen of a run that is over.
pub struct Evidence {
    pub summary: Summary,
    journal: Vec<Transition>,
    lines: Vec<Line>,
    queue_ended_at: i64,
}

/// Ends the replicas and collects it.
pub async fn evidence(
    size: Size,
    log: &Log,
    fleet: &Fleet,
    receiver: &Receiver,
    connection: &mut PgConnection,
    (drained_in, drain_deadline): (Duration, Duration),
) -> Evidence {
    for place in 0..fleet.len() {
        fleet.kill(place).await;
    }
    let queue_ended_at = journal::now(connection).await;
    let (journal, received) = (journal::read(connection).await, receiver.received());
    let lines: Vec<_> = (1..=fleet.started()).flat_map(|replica| worker_log::read(&fleet.log(replica))).collect();
    let summary = Summary {
        gaps: gaps::hits(&journal, &received, &lines),
        size,
        commits: log.commits(),
        acts: log.acts(),
        faults: log.faults(),
        received,
        processes: fleet.started(),
        turned_away: receiver.turned_away(),
        drained_in,
        drain_deadline,
    };
    Evidence { summary, journal, lines, queue_ended_at }
}

impl Evidence {
    /// Lets the checker judge it, and tells what it came to.
    pub fn judged(self, scratch: &Scratch) {
        let Self { summary, journal, lines, queue_ended_at } = self;
        scratch.write("commits.jsonl", &summary.commits);
        scratch.write("acts.jsonl", &summary.acts);
        scratch.write("faults.jsonl", &summary.faults);
        scratch.write("journal.jsonl", &journal);
        let report = judge::judge(&summary, &journal, &lines, queue_ended_at, MARGIN);
        println!("{summary}{report}");
        assert!(report.is_clean(), "rules were broken: {}", report.violations.len());
        assert!(summary.drained_in <= summary.drain_deadline, "the backlog did not drain");
    }
}
