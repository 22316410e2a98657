//! How far each channel's due index has been claimed, so that a claim does not walk what lies behind.
//!
//! What was claimed and ended leaves entries in the index until vacuum may remove them, which it may not while anybody
//! holds a snapshot from before. A search ahead begins where the last claim came to. Behind that there is only what a
//! search of all finds: leases that ran out, and what a long transaction committed late.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use chrono::{DateTime, Utc};
use postrider_actors::{ChannelName, Search};

use super::claim::Claimed;

/// What became ready this long before a claim may have been committed after it.
const LATE_COMMIT: Duration = Duration::from_secs(2);

/// Of one process; lost, it costs one search of all.
#[derive(Debug, Default)]
pub(super) struct Frontiers(Mutex<HashMap<ChannelName, DateTime<Utc>>>);

impl Frontiers {
    /// Where a claim of `channel` begins: at the frontier, or with everything (`None`).
    pub(super) fn begin(&self, channel: &ChannelName, search: Search) -> Option<DateTime<Utc>> {
        match search {
            Search::Ahead => self.0.lock().unwrap_or_else(PoisonError::into_inner).get(channel).copied(),
            Search::All => None,
        }
    }

    /// Notes what a claim came to. The frontier follows the database's clock, also where that is set back.
    pub(super) fn note(&self, channel: &ChannelName, claimed: &Claimed) {
        if let Some(at) = claimed.at {
            let settled = at - LATE_COMMIT;
            let frontier = claimed.more_from.map_or(settled, |last| last.min(settled));
            self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(channel.clone(), frontier);
        }
    }
}
