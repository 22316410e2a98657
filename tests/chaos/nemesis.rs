//! What breaks things, each by a script of its own that the seed decides.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::cluster::Cluster;
use crate::dice::Dice;
use crate::fleet::Fleet;
use crate::processes::Signal;
use crate::proxy::{CommitCut, Proxy};
use crate::receiver::Receiver;
use crate::record::{Fault, FaultKind, Log, Scope};
use crate::replica::ENDED;
use crate::settings::{LEASE, Size};

/// For orders to be carried out on a busy machine, and for what was broken to be seen as broken.
const SETTLING: Duration = Duration::from_millis(500);
/// Long enough for sends to begin, and shorter than they wait to be connected.
const UNREAD: Duration = Duration::from_millis(250);

/// All that can be broken.
pub struct World {
    pub size: Size,
    pub clock: Clock,
    pub log: Arc<Log>,
    pub cluster: Mutex<Cluster>,
    pub fleet: Fleet,
    pub hosts: Proxy,
    pub receiver: Receiver,
    /// Replicas whose supervisor was killed, and whose processes so end by themselves.
    pub to_end: std::sync::Mutex<HashSet<u32>>,
}

impl World {
    fn fault(&self, kind: FaultKind, scope: Scope, from: Duration) {
        self.log.fault(Fault { kind, scope, from, until: self.clock.now() + SETTLING });
    }

    fn place(&self, dice: &mut Dice) -> usize {
        usize::try_from(dice.below(self.fleet.len() as u64)).unwrap()
    }
}

/// Runs every nemesis until it is told that the storm is over, and leaves nothing broken.
pub async fn storm(world: &Arc<World>, over: &CancellationToken) {
    let mut nemeses = JoinSet::new();
    let size = world.size.clone();
    macro_rules! every {
        ($part:literal, $pause:expr, $act:ident) => {
            let (world, over) = (Arc::clone(world), over.clone());
            let mut dice = Dice::new(world.size.seed, $part);
            nemeses.spawn(async move {
                loop {
                    tokio::select! {
                        () = over.cancelled() => return,
                        () = tokio::time::sleep($pause) => {}
                    }
                    $act(&world, &mut dice).await;
                }
            });
        };
    }
    every!(10, size.kill_actor_every, kill_an_actor);
    every!(11, size.kill_replica_every, kill_a_replica);
    every!(12, size.freeze_every, freeze_a_replica);
    every!(13, size.database_fault_every, break_the_database);
    every!(14, size.cut_every, cut_a_connection);
    every!(15, Duration::from_millis(8500), silence_the_receiver);
    while let Some(ended) = nemeses.join_next().await {
        ended.unwrap();
    }
}

/// Starts again what has ended, until it is told to stop: as what watches over a host's processes would.
pub async fn keep_replicas_running(world: Arc<World>, over: CancellationToken) {
    while !over.is_cancelled() {
        let from = world.clock.now();
        for (replica, status) in world.fleet.mend().await {
            let expected = world.to_end.lock().unwrap().contains(&replica) && status.code() == Some(ENDED);
            assert!(expected, "replica {replica} ended by itself: {status}");
            world.log.fault(Fault {
                kind: FaultKind::SupervisorKilled,
                scope: Scope::Replica { replica },
                from: from.saturating_sub(SETTLING),
                until: world.clock.now() + SETTLING,
            });
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

async fn kill_an_actor(world: &World, dice: &mut Dice) {
    let (place, from) = (world.place(dice), world.clock.now());
    let channel = usize::try_from(dice.below(2)).unwrap();
    let (kind, child) = match dice.below(100) {
        0..50 => (FaultKind::SenderKilled, format!("sender {channel} {}", dice.below(2))),
        50..92 => (FaultKind::ClaimerKilled, format!("claimer {channel}")),
        92..98 => (FaultKind::CleanupOrGaugeKilled, ["cleanup", "gauge"][channel].to_owned()),
        // Noted when its process has ended of it.
        _ => {
            let replica = world.fleet.kill_actor(place, "supervisor").await;
            world.to_end.lock().unwrap().extend(replica);
            return;
        }
    };
    let Some(replica) = world.fleet.kill_actor(place, &child).await else { return };
    let scope = match kind {
        FaultKind::SenderKilled => Scope::Senders { replica, channel },
        FaultKind::ClaimerKilled => Scope::Claimer { replica },
        _ => Scope::Hosts,
    };
    world.fault(kind, scope, from);
}

async fn kill_a_replica(world: &World, dice: &mut Dice) {
    let (place, from) = (world.place(dice), world.clock.now());
    // Every second time with sends that the receiver has not read, which else are hit by luck alone.
    let unread = dice.turn().is_multiple_of(2);
    if unread {
        world.receiver.set_deaf(true);
        tokio::time::sleep(UNREAD).await;
    }
    let replica = world.fleet.kill(place).await;
    if unread {
        world.receiver.set_deaf(false);
        world.fault(FaultKind::ReceiverOut, Scope::Receiver, from);
    }
    world.fault(FaultKind::ReplicaKilled, Scope::Replica { replica }, from);
}

async fn freeze_a_replica(world: &World, dice: &mut Dice) {
    let (place, from) = (world.place(dice), world.clock.now());
    let replica = world.fleet.replica(place).await;
    world.fleet.signal(place, replica, Signal::Stop).await;
    let lease = u64::try_from(LEASE.as_millis()).unwrap();
    tokio::time::sleep(dice.millis(lease / 2, lease * 3)).await;
    world.fleet.signal(place, replica, Signal::Continue).await;
    world.fault(FaultKind::ReplicaFrozen, Scope::Replica { replica }, from);
}

async fn break_the_database(world: &World, dice: &mut Dice) {
    let mut cluster = world.cluster.lock().await;
    let from = world.clock.now();
    // In turn, so that each kind comes even in a short run.
    let kind = match dice.turn() % 4 {
        0 | 2 => {
            cluster.kill().await;
            cluster.start_again().await;
            FaultKind::PostmasterKilled
        }
        1 => {
            cluster.stop().await;
            cluster.start_again().await;
            FaultKind::DatabaseRestarted
        }
        _ => {
            let mut connection = cluster.connect().await;
            sqlx::query("select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()")
                .fetch_all(&mut connection)
                .await
                .unwrap();
            FaultKind::SessionsTerminated
        }
    };
    world.fault(kind, Scope::Database, from);
}

async fn cut_a_connection(world: &World, dice: &mut Dice) {
    // One place more than there are replicas: the hosts'.
    let place = usize::try_from(dice.below(world.fleet.len() as u64 + 1)).unwrap();
    let (proxy, scope) = match world.fleet.proxies.get(place) {
        Some(proxy) => (proxy, Scope::Replica { replica: world.fleet.replica(place).await }),
        None => (&world.hosts, Scope::Hosts),
    };
    let from = world.clock.now();
    match dice.below(100) {
        0..25 => {
            proxy.cut_all();
            world.fault(FaultKind::ConnectionsCut, scope, from);
        }
        25..75 => {
            let cut = if dice.percent(50) { CommitCut::Before } else { CommitCut::After };
            let before = proxy.commits_cut(cut);
            proxy.arm(cut);
            let deadline = from + Duration::from_secs(1);
            while proxy.commits_cut(cut) == before && world.clock.now() < deadline {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            proxy.disarm();
            let kind = if cut == CommitCut::Before { FaultKind::CommitCutBefore } else { FaultKind::CommitCutAfter };
            if proxy.commits_cut(cut) > before {
                world.fault(kind, scope, from);
            }
        }
        _ => {
            let direction = usize::try_from(dice.below(2)).unwrap();
            proxy.stall(direction, true);
            tokio::time::sleep(dice.millis(300, 2500)).await;
            proxy.stall(direction, false);
            world.fault(FaultKind::Stalled, scope, from);
            // One that was started meanwhile had to do with it too.
            if let Scope::Replica { replica: before } = scope {
                let replica = world.fleet.replica(place).await;
                if replica != before {
                    world.fault(FaultKind::Stalled, Scope::Replica { replica }, from);
                }
            }
        }
    }
}

async fn silence_the_receiver(world: &World, _: &mut Dice) {
    let from = world.clock.now();
    world.receiver.set_out(true);
    tokio::time::sleep(Duration::from_secs(1)).await;
    world.receiver.set_out(false);
    world.fault(FaultKind::ReceiverOut, Scope::Receiver, from);
}
