//! Where leases were lost on their way: the places between claim and record that faults really hit.

use std::collections::{BTreeMap, HashMap, HashSet};

use uuid::Uuid;

use crate::journal::Transition;
use crate::receiver::Received;
use crate::worker_log::{Came, Line};

/// A place where a worker was lost with a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Gap {
    /// Claimed, and never begun.
    ClaimToSend,
    /// Begun, and not read by the receiver.
    BeforeTheReceiver,
    /// Read by the receiver, and the attempt never ended.
    MidSend,
    /// The attempt ended, and nobody asked to record it.
    AnswerToRecord,
    /// Asked to be recorded, and not recorded then.
    InRecord,
    /// Recorded, and the worker never heard of it.
    AfterRecord,
}

impl Gap {
    pub const ALL: [Self; 6] = [
        Self::ClaimToSend,
        Self::BeforeTheReceiver,
        Self::MidSend,
        Self::AnswerToRecord,
        Self::InRecord,
        Self::AfterRecord,
    ];
}

#[derive(Default)]
struct Seen {
    began: bool,
    ended: bool,
    /// Asked to be recorded so often.
    recording: usize,
    /// And heard so often what came of it.
    settled: usize,
    recorded: bool,
}

/// How often each was hit. Recording is seen in watched replicas alone: others count as not having asked.
pub fn hits(journal: &[Transition], received: &[Received], lines: &[Line]) -> BTreeMap<Gap, usize> {
    let mut seen: HashMap<Uuid, Seen> = HashMap::new();
    for line in lines {
        match line {
            Line::Began { token, .. } => seen.entry(*token).or_default().began = true,
            Line::Ended { token, .. } => seen.entry(*token).or_default().ended = true,
            Line::Dropped { .. } => {}
            Line::Recording { token, .. } => seen.entry(*token).or_default().recording += 1,
            Line::Settled { token, settled, .. } => {
                let seen = seen.entry(*token).or_default();
                seen.settled += 1;
                seen.recorded |= matches!(settled, Came::Recorded(_));
            }
        }
    }
    let read: HashSet<(Uuid, u32)> = received.iter().map(|one| (one.delivery, one.attempt)).collect();
    let mut hits = BTreeMap::new();
    for transition in journal {
        let (Some(before), Some(after)) = (&transition.before, &transition.after) else { continue };
        let Some(token) = before.token else { continue };
        let seen = seen.entry(token).or_default();
        let lapsed = after.token.is_some();
        let gap = match (lapsed, seen.began, seen.ended) {
            (false, ..) if after.status == "cancelled" || seen.recording == 0 => continue,
            (false, ..) if !seen.recorded => Gap::AfterRecord,
            (false, ..) if seen.recording > seen.settled => Gap::InRecord,
            (false, ..) => continue,
            (true, false, _) => Gap::ClaimToSend,
            (true, true, false) if read.contains(&(transition.delivery, before.attempt)) => Gap::MidSend,
            (true, true, false) => Gap::BeforeTheReceiver,
            (true, true, true) if seen.recording > 0 => Gap::InRecord,
            (true, true, true) => Gap::AnswerToRecord,
        };
        *hits.entry(gap).or_default() += 1;
    }
    hits
}
