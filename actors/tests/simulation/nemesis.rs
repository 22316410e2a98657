//! What goes wrong in a run, and when: drawn from its seed.

use std::sync::Arc;
use std::time::Duration;

use postrider_actors::checker::{Scope, Worker};
use postrider_actors::laws::Harness;
use postrider_actors::model::Model;
use postrider_actors::{ChildId, SenderIndex};

use crate::world::{Gap, TURMOIL, World, channels, millis};

/// Who is to die.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Victim {
    Sender(usize),
    Claimer,
    Supervisor,
    /// Nobody: the whole replica stands still for so long.
    Stillness(Duration),
}

/// Every kind of fault, by the name that the report gives it.
pub const KINDS: [&str; 16] = [
    "sender killed",
    "claimer killed",
    "cleanup killed",
    "gauge killed",
    "supervisor killed",
    "replica restarted",
    "replica frozen",
    "store unreachable",
    "store's answers lost",
    "store's clock leaps ahead",
    "store's clock leaps back",
    "receiver ill",
    "sender killed in a gap",
    "claimer killed in a gap",
    "supervisor killed in a gap",
    "replica frozen in a gap",
];

/// Says that a replica has come to this gap; whoever is to die there does.
pub fn reached(world: &Arc<World>, replica: u32, gap: Gap) {
    let victim = {
        let mut shared = world.lock();
        match &mut shared.trouble.armed {
            Some((armed, 0, victim)) if *armed == gap => {
                let victim = *victim;
                shared.trouble.armed = None;
                *shared.hits.entry(gap).or_default() += 1;
                victim
            }
            Some((armed, left, _)) if *armed == gap => {
                *left -= 1;
                return;
            }
            _ => return,
        }
    };
    let channel = channels().remove(0).name;
    let (kind, child) = match victim {
        Victim::Sender(index) => ("sender killed in a gap", ChildId::Sender(channel, SenderIndex::BOTH[index])),
        Victim::Claimer => ("claimer killed in a gap", ChildId::Claimer(channel)),
        Victim::Supervisor => ("supervisor killed in a gap", ChildId::Supervisor),
        Victim::Stillness(lasting) => return freeze(world, replica, lasting, "replica frozen in a gap"),
    };
    kill(world, replica, child, kind);
}

fn freeze(world: &World, replica: u32, lasting: Duration, kind: &str) {
    world.lock().trouble.frozen.insert(replica, world.now() + lasting);
    world.fault(kind, Scope::Replica(replica), lasting + millis(500));
}

fn kill(world: &World, replica: u32, child: ChildId, kind: &str) {
    let engine = world.lock().replicas.iter().find(|one| one.number == replica).map(|one| one.engine.clone());
    let Some(engine) = engine else { return };
    let scope = match child {
        ChildId::Sender(..) => Scope::Sender(Worker { replica, sender: 0 }),
        ChildId::Claimer(_) => Scope::Claimer(replica),
        _ => Scope::Replica(replica),
    };
    engine.kill(&child);
    world.fault(kind, scope, Duration::from_secs(2));
}

/// Strikes until the turmoil is over.
pub async fn strike(world: Arc<World>) {
    let model = Model(Arc::clone(&world.queue));
    let mut set_back = Duration::ZERO;
    loop {
        world.pause(8_000).await;
        if world.now() >= TURMOIL {
            return;
        }
        restart_the_dead(&world).await;
        let index = {
            let mut shared = world.lock();
            let count = shared.replicas.len() as u64;
            shared.draws.below(count) as usize
        };
        let replica = world.lock().replicas[index].number;
        let channel = channels().swap_remove(usize::from(world.below(4) == 0)).name;
        let lasting = millis(500 + world.below(25_000));
        let now = world.now();
        match world.below(18) {
            0 => kill(&world, replica, ChildId::Sender(channel, SenderIndex::BOTH[0]), KINDS[0]),
            1 => kill(&world, replica, ChildId::Claimer(channel), KINDS[1]),
            2 => kill(&world, replica, ChildId::Cleanup, KINDS[2]),
            3 => kill(&world, replica, ChildId::Gauge, KINDS[3]),
            4 => kill(&world, replica, ChildId::Supervisor, KINDS[4]),
            5 => {
                let engine = world.lock().replicas.remove(index).engine;
                world.fault(KINDS[5], Scope::Replica(replica), Duration::from_secs(4));
                engine.shut_down().await;
                world.start_replica().await;
            }
            6 => freeze(&world, replica, lasting, KINDS[6]),
            7 => {
                world.lock().trouble.unreachable_until = now + lasting;
                world.fault(KINDS[7], Scope::Database, lasting + Duration::from_secs(6));
            }
            8 => {
                world.lock().trouble.deaf_until = now + lasting;
                world.fault(KINDS[8], Scope::Database, lasting + Duration::from_secs(6));
            }
            9 => {
                world.fault(KINDS[9], Scope::Database, Duration::from_secs(10));
                world.lock().trouble.leapt = Some(now);
                model.let_pass(lasting).await;
            }
            10 if set_back < Duration::from_secs(20) => {
                set_back += lasting.min(Duration::from_secs(10));
                world.fault(KINDS[10], Scope::Database, Duration::from_secs(10));
                world.queue.set_back(lasting.min(Duration::from_secs(10)));
            }
            11 => {
                world.lock().trouble.receiver_until = now + lasting;
                world.fault(KINDS[11], Scope::Receiver, lasting);
            }
            _ => {
                let mut shared = world.lock();
                let gap = Gap::ALL[shared.draws.below(7) as usize];
                let victim = match shared.draws.below(7) {
                    0 | 1 => Victim::Sender(shared.draws.below(2) as usize),
                    2 | 3 => Victim::Claimer,
                    4 => Victim::Supervisor,
                    _ => Victim::Stillness(lasting),
                };
                let count = shared.draws.below(3);
                shared.trouble.armed = Some((gap, count, victim));
            }
        }
    }
}

async fn restart_the_dead(world: &Arc<World>) {
    let dead = {
        let mut shared = world.lock();
        let before = shared.replicas.len();
        shared.replicas.retain(|replica| !replica.engine.has_ended());
        before - shared.replicas.len()
    };
    for _ in 0..dead {
        world.start_replica().await;
    }
}

/// Ends whatever is wrong.
pub async fn relent(world: &Arc<World>) {
    {
        let now = world.now();
        let mut shared = world.lock();
        shared.trouble.armed = None;
        shared.trouble.over = true;
        shared.trouble.unreachable_until = now;
        shared.trouble.deaf_until = now;
        shared.trouble.frozen.clear();
    }
    // A kill that was under way is done.
    tokio::time::sleep(millis(100)).await;
    restart_the_dead(world).await;
}
