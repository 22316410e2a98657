//! The primary dies and its synchronous standby takes over: nothing that was acknowledged is lost, order holds, and the
//! replicas come back by themselves.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use sqlx::postgres::PgConnectOptions;
use tokio::task::JoinSet;

use crate::ca::Ca;
use crate::clock::Clock;
use crate::cluster::Cluster;
use crate::fleet::Fleet;
use crate::hosts::{Fate, Host};
use crate::proxy::Proxy;
use crate::receiver::Receiver;
use crate::record::{Fault, FaultKind, Log, Scope};
use crate::scratch::Scratch;
use crate::settings::Size;
use crate::storm::{drain, evidence};
use crate::{journal, support};

pub fn run(test: &'static str) {
    let scratch = Scratch::new();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(judged(test, &scratch));
}

fn size() -> Size {
    let seed = Size::from_environment().seed;
    let storm = Duration::from_secs(4);
    Size { replicas: 2, hosts: 6, transactions_per_host: 160, keys: 60, storm, ..Size::short(seed) }
}

async fn judged(test: &'static str, scratch: &Scratch) {
    let (size, ca, clock, log) = (size(), Ca::new(), Clock::start(), Arc::new(Log::default()));
    let mut primary = Cluster::start(&scratch.path().join("db"), &[]).await;
    primary.create_database().await;
    let mut connection = primary.connect().await;
    postrider::migrate(&mut connection).await.unwrap();
    journal::attach(&mut connection).await;
    let replication = Proxy::start(primary.socket()).await;
    let standby = standby_of(&mut primary, &scratch.path().join("standby"), &replication).await;
    let mut connection = primary.connect().await;
    // From here on a commit is acknowledged only once the standby has it.
    for statement in ["alter system set synchronous_standby_names = 'standby'", "select pg_reload_conf()"] {
        sqlx::query(statement).execute(&mut connection).await.unwrap();
    }
    support::eventually(Duration::from_secs(10), "the standby is synchronous", async || {
        let state = sqlx::query_scalar::<_, String>("select sync_state from pg_stat_replication");
        state.fetch_optional(&mut connection).await.unwrap().as_deref() == Some("sync")
    })
    .await;
    let mut on_primary = connection;

    let mut proxies = Vec::new();
    for _ in 0..size.replicas {
        proxies.push(Proxy::start(primary.socket()).await);
    }
    let hosts_way = Proxy::start(primary.socket()).await;
    let receiver = Receiver::start(&ca, clock, size.seed, &scratch.path().join("received.jsonl")).await;
    let fleet = Fleet::start(test, ca.path().to_owned(), scratch.path().to_owned(), clock, proxies).await;
    let options: PgConnectOptions = hosts_way.url().parse().unwrap();
    let (places, mut recording) = (Arc::new(AtomicU64::new(0)), JoinSet::new());
    for number in 0..size.hosts {
        let (destination, places, log) = (receiver.url(), Arc::clone(&places), Arc::clone(&log));
        recording.spawn(Host { number, options: options.clone(), destination, clock, places, log }.run(size.clone()));
    }

    // In the middle of the load.
    support::eventually(Duration::from_secs(20), "a third is recorded", async || {
        log.commits().len() as u64 > size.hosts * size.transactions_per_host / 3
    })
    .await;
    let from = clock.now();
    // The standby hears nothing for a moment before: what it has not heard of was acknowledged to nobody.
    let mut connection = standby.connect().await;
    replication.stall(1, true);
    support::eventually(Duration::from_secs(2), "commits wait for the standby", async || {
        let waiting = "select count(*) > 3 from pg_stat_activity where wait_event = 'SyncRep'";
        sqlx::query_scalar::<_, bool>(waiting).fetch_one(&mut on_primary).await.unwrap()
    })
    .await;
    primary.kill().await;
    let promoted: bool = sqlx::query_scalar("select pg_promote()").fetch_one(&mut connection).await.unwrap();
    assert!(promoted, "the standby was not promoted");
    for way in fleet.proxies.iter().chain([&hosts_way]) {
        way.lead_to(standby.socket());
    }
    let until = clock.now() + Duration::from_secs(1);
    log.fault(Fault { kind: FaultKind::PostmasterKilled, scope: Scope::Database, from, until });
    let before = log.commits().iter().filter(|commit| commit.fate == Fate::Committed).count();
    while let Some(ended) = recording.join_next().await {
        ended.unwrap();
    }
    let unknown = log.commits().iter().any(|commit| commit.fate == Fate::Unknown);
    assert!(unknown, "no commit was under way when the primary was killed");
    let after = log.commits().iter().filter(|commit| commit.fate == Fate::Committed).count();
    assert!(after > before, "nothing was recorded after the failover");

    receiver.only_success();
    let drained = drain(&log, clock, options, &mut connection).await;
    assert!(fleet.mend().await.is_empty(), "a replica ended by itself");
    assert_eq!(fleet.started() as usize, size.replicas, "the replicas came back by themselves");
    evidence(size, &log, &fleet, &receiver, &mut connection, drained).await.judged(scratch);
}

/// A copy of the primary that follows it: of its files while it stands still, which takes no program but cp.
async fn standby_of(primary: &mut Cluster, folder: &Path, way: &Proxy) -> Cluster {
    let follows = format!("{}&application_name=standby", way.url());
    // A folder of the private server's own making, whose cluster is then the primary's.
    let mut standby = Cluster::start(folder, &[("primary_conninfo", &follows), ("hot_standby", "on")]).await;
    standby.stop().await;
    primary.stop().await;
    std::fs::remove_dir_all(standby.data()).unwrap();
    let copied = Command::new("cp").arg("-a").arg(primary.data()).arg(standby.data()).status().unwrap();
    assert!(copied.success(), "the primary was not copied");
    std::fs::write(standby.data().join("standby.signal"), "").unwrap();
    primary.start_again().await;
    standby.start_again().await;
    standby
}
