//! The actors' health as a tree.

use std::fmt;

use postrider_actors::{ActorHealth, ChannelHealth, ChildId, TreeHealth};

/// Draws the tree, a line for each actor.
pub(super) struct Drawn<'a>(pub(super) &'a TreeHealth);

impl fmt::Display for Drawn<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(tree) = self;
        line(f, "", "supervisor", tree.actor(&ChildId::Supervisor))?;
        for ChannelHealth { channel, state, .. } in &tree.channels {
            writeln!(f)?;
            write!(f, "{:34} {}", format!("├── channel {channel}"), state.as_str())?;
            let actors: Vec<&ActorHealth> =
                tree.actors.iter().filter(|actor| actor.child.channel() == Some(channel)).collect();
            for (index, actor) in actors.iter().enumerate() {
                let branch = if index + 1 == actors.len() { "│   └── " } else { "│   ├── " };
                let child = actor.child.to_string();
                let name = child.rsplit_once('/').map_or(child.as_str(), |(_, name)| name);
                writeln!(f)?;
                line(f, branch, name, Some(actor))?;
            }
        }
        for (branch, child) in [("├── ", ChildId::Cleanup), ("└── ", ChildId::Gauge)] {
            writeln!(f)?;
            line(f, branch, &child.to_string(), tree.actor(&child))?;
        }
        Ok(())
    }
}

fn line(f: &mut fmt::Formatter<'_>, branch: &str, name: &str, actor: Option<&ActorHealth>) -> fmt::Result {
    write!(f, "{:34} ", format!("{branch}{name}"))?;
    let Some(actor) = actor else { return f.write_str("not there") };
    f.write_str(actor.state.as_str())?;
    if actor.in_flight > 0 {
        write!(f, ", {} in flight", actor.in_flight)?;
    }
    if actor.restarts > 0 {
        let reason = actor.last_restart.map_or("unknown", |reason| reason.as_str());
        write!(f, ", restarts: {} ({reason})", actor.restarts)?;
    }
    Ok(())
}
