//! The laws of the tree at its edges: attempts that go wrong in every way that code can, and floods.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::tree::{Act, Receiver, becomes, config, eventually, restarts, start};
use super::{Harness, channel, wishes};
use crate::config::EngineConfig;
use crate::engine::Engine;
use crate::outcome::{Outcome, Reason, Status};

/// A way in which an attempt goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Poison {
    PanicsWithANumber,
    PanicsHoldingALock,
    PanicsInDrop,
    PanicsInDropAtItsTimeout,
    NeverEnds,
}

static SHARED: Mutex<()> = Mutex::new(());

struct PanicsInDrop;

impl Drop for PanicsInDrop {
    fn drop(&mut self) {
        panic!("in drop");
    }
}

impl Poison {
    const ALL: [Self; 5] = [
        Self::PanicsWithANumber,
        Self::PanicsHoldingALock,
        Self::PanicsInDrop,
        Self::PanicsInDropAtItsTimeout,
        Self::NeverEnds,
    ];

    fn reason(self) -> Reason {
        if self == Self::NeverEnds { Reason::Timeout } else { Reason::Panicked }
    }

    pub(super) async fn act(self) -> Outcome {
        match self {
            Self::PanicsWithANumber => std::panic::panic_any(7_u64),
            Self::PanicsHoldingALock => {
                let _held = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
                panic!("holding a lock")
            }
            Self::PanicsInDrop => {
                let _dropped = PanicsInDrop;
                Outcome::Succeeded
            }
            Self::PanicsInDropAtItsTimeout => {
                let _dropped = PanicsInDrop;
                std::future::pending().await
            }
            Self::NeverEnds => std::future::pending().await,
        }
    }
}

fn in_flight(engine: &Engine) -> usize {
    engine.health().actors.iter().map(|actor| actor.in_flight).sum()
}

/// C50: two slots, three of each poison, then a hundred that are good.
pub async fn c50_poison_of_every_kind_costs_its_own_attempts_alone<H: Harness>(harness: H) {
    let poison = harness.record(wishes(3 * Poison::ALL.len(), None)).await;
    let kind_of = {
        let poison = poison.clone();
        move |id| poison.iter().position(|one| *one == id).map(|place| Poison::ALL[place % Poison::ALL.len()])
    };
    let receiver = Receiver::new({
        let kind_of = kind_of.clone();
        move |lease| match kind_of(lease.delivery.id) {
            Some(kind) => Act::Poison(kind),
            None => Act::Answer(Outcome::Succeeded),
        }
    });
    let engine = start(&harness, &receiver, config()).await;
    let good = harness.record(wishes(100, None)).await;
    becomes(&harness, &good, Status::Succeeded).await;
    assert!(good.iter().all(|id| receiver.sent(*id) == 1));
    for id in &poison {
        let reason = kind_of(*id).unwrap().reason();
        eventually(&format!("{reason} is recorded"), async || {
            harness.look(*id).await.is_some_and(|look| look.last_error == Some(reason))
        })
        .await;
        assert_eq!(harness.look(*id).await.unwrap().status, Status::Pending, "worth another attempt");
    }
    eventually("every slot is free", async || in_flight(&engine) == 0).await;
    assert_eq!(restarts(&engine), 0, "no actor pays for it");
    engine.shut_down().await;
}

/// Any number of hints waits as one, and is lost on nobody.
pub async fn a_flood_of_hints_waits_as_one_and_deliveries_go_on<H: Harness>(harness: H) {
    let receiver = Receiver::new(|_| Act::Answer(Outcome::Succeeded));
    let rarely = EngineConfig { poll_interval: Duration::from_secs(3600), ..config() };
    let engine = start(&harness, &receiver, rarely).await;
    let mut ids = Vec::new();
    let mut deepest = 0;
    for _ in 0..20 {
        ids.extend(harness.record(wishes(1, None)).await);
        for _ in 0..5_000 {
            engine.hint(&channel().name);
        }
        let depths = engine.health().actors.into_iter().map(|actor| actor.mailbox_depth);
        deepest = depths.max().unwrap_or(0).max(deepest);
        tokio::task::yield_now().await;
    }
    assert!(deepest <= 20, "{deepest} messages wait");
    becomes(&harness, &ids, Status::Succeeded).await;
    assert!(ids.iter().all(|id| receiver.sent(*id) == 1));
    engine.shut_down().await;
}
