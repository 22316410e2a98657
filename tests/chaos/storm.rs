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
use crate::nemesis::{World, keep_replicas_running, storm};
use crate::operator::Desk;
use crate::proxy::Proxy;
use crate::receiver::Receiver;
use crate::record::Log;
use crate::report::Summary;
use crate::scratch::Scratch;
use crate::settings::{BACKOFF_CAP, LEASE, Size};
use crate::{gaps, journal, worker_log};

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
    let fleet = Fleet::start(test, ca.path().to_owned(), scratch.path().to_owned(), proxies).await;
    let cluster = Mutex::new(cluster);
    let world = Arc::new(World { size: size.clone(), clock, log: Arc::clone(&log), cluster, fleet, hosts, receiver });

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
    let desk = Desk { options: through_proxy, clock, log: Arc::clone(&log) };
    let mut connection = world.cluster.lock().await.connect().await;
    let drain_deadline = longest_wait(&mut connection).await + LEASE + BACKOFF_CAP + MARGIN;
    let from = clock.now();
    loop {
        let failed = desk.retry_all_failed().await;
        let unfinished: i64 = sqlx::query_scalar("select count(*) from postrider.deliveries where status = 'pending'")
            .fetch_one(&mut connection)
            .await
            .unwrap();
        if unfinished == 0 && failed == 0 {
            break;
        }
        // What has not drained by then the checker tells one by one.
        if clock.now() - from > drain_deadline {
            println!("{unfinished} deliveries have not drained in {drain_deadline:?}");
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let drained_in = clock.now() - from;
    run_over.cancel();
    while let Some(ended) = tasks.join_next().await {
        ended.unwrap();
    }
    for place in 0..world.fleet.len() {
        world.fleet.kill(place).await;
    }

    let journal = journal::read(&mut connection).await;
    let received = world.receiver.received();
    let lines: Vec<_> =
        (1..=world.fleet.started()).flat_map(|replica| worker_log::read(&world.fleet.log(replica))).collect();
    scratch.write("commits.jsonl", &log.commits());
    scratch.write("journal.jsonl", &journal);
    scratch.write("acts.jsonl", &log.acts());
    scratch.write("faults.jsonl", &log.faults());
    let summary = Summary {
        gaps: gaps::hits(&journal, &received, &lines),
        size,
        commits: log.commits(),
        acts: log.acts(),
        faults: log.faults(),
        received,
        processes: world.fleet.started(),
        turned_away: world.receiver.turned_away(),
        drained_in,
        drain_deadline,
    };
    println!("{summary}");
    let missing = summary.missing();
    assert!(missing.is_empty(), "a run without these proves nothing: {missing:?}");
    assert!(drained_in <= drain_deadline, "not drained");
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
