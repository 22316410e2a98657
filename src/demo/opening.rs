//! The first scene: a sender is killed while it waits for an answer.

use std::time::{Duration, Instant};

use postrider_actors::{ActorHealth, ChildId};

use super::DemoError;
use super::narrator::Narrator;
use super::stage::Stage;

/// What each step may take before the demo goes on without it; the table then differs.
const PATIENCE: Duration = Duration::from_secs(5);

/// Waits until the one delivery is with its receiver, and kills the sender that sent it.
pub(super) async fn kill_the_sender(stage: &Stage, narrator: &mut Narrator<'_>) -> Result<(), DemoError> {
    let sending = || busy_sender(stage).filter(|_| !stage.ledger().receipts().is_empty());
    let Some(sender) = eventually(sending).await else {
        return narrator.say("nothing reached orphaned: no sender was killed");
    };
    stage.subsystem().kill(&sender);
    narrator.say(format_args!("orphaned has its token and has not answered yet: killed {sender}"))?;
    let restarted = eventually(|| {
        let actor = stage.subsystem().health().tree.actor(&sender).cloned();
        actor.filter(|actor| actor.restarts > 0 && actor.state == postrider_actors::ActorState::Running)
    });
    match restarted.await {
        Some(_) => {
            narrator.say("the supervisor has started that sender again; its delivery waits for the end of its lease")
        }
        None => narrator.say(format_args!("{sender} was not started again")),
    }
}

fn busy_sender(stage: &Stage) -> Option<ChildId> {
    let is_busy = |actor: &&ActorHealth| matches!(actor.child, ChildId::Sender(..)) && actor.in_flight > 0;
    stage.subsystem().health().tree.actors.iter().find(is_busy).map(|actor| actor.child.clone())
}

async fn eventually<T>(mut condition: impl FnMut() -> Option<T>) -> Option<T> {
    let begun = Instant::now();
    loop {
        let found = condition();
        if found.is_some() || begun.elapsed() > PATIENCE {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
