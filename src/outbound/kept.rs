//! Connections kept for a moment, each for the one destination that it has served.
//!
//! A destination is its whole URL: what one receiver answers can never be read as the answer of another, though both are
//! behind one host. The rules of an attempt stay as they are: the name is looked up, every address of the answer is
//! judged, and a kept connection serves only where it leads to one of them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::address::PublicAddr;
use super::exchange::Link;

/// Longer than this no connection serves, however busy: certificates are verified when it is made.
const LONGEST_LIFE: Duration = Duration::from_secs(60);
/// In all.
const MOST: usize = 256;

/// Shared by a client and its replies.
#[derive(Clone)]
pub(super) struct Kept(Arc<Shared>);

struct Shared {
    keep_for: Duration,
    links: Mutex<Links>,
}

#[derive(Default)]
struct Links {
    by_destination: HashMap<String, Vec<Idle>>,
    closer: Option<JoinHandle<()>>,
}

struct Idle {
    link: Link,
    since: Instant,
}

impl Kept {
    /// Keeps each for so long after its last answer; zero: none.
    pub(super) fn new(keep_for: Duration) -> Self {
        Self(Arc::new(Shared { keep_for, links: Mutex::default() }))
    }

    /// One that leads to an address of these, still stands, and has nothing to say.
    pub(super) fn take(&self, destination: &str, addresses: &[PublicAddr]) -> Option<Link> {
        let mut links = self.0.lock();
        let idle = links.by_destination.get_mut(destination)?;
        let mut found = None;
        while found.is_none() {
            let Some(mut last) = idle.pop() else { break };
            let leads_there = addresses.iter().any(|address| address.socket_addr() == last.link.peer());
            if leads_there && last.is_fresh(self.0.keep_for) && last.link.is_quiet() {
                found = Some(last.link);
            }
        }
        if idle.is_empty() {
            links.by_destination.remove(destination);
        }
        found
    }

    /// Keeps it, if it may serve again.
    pub(super) fn put(&self, destination: String, mut link: Link) {
        let Ok(runtime) = Handle::try_current() else { return };
        if self.0.keep_for.is_zero() || link.made().elapsed() >= LONGEST_LIFE || !link.is_quiet() {
            return;
        }
        let mut links = self.0.lock();
        if links.by_destination.values().map(Vec::len).sum::<usize>() >= MOST {
            return;
        }
        links.by_destination.entry(destination).or_default().push(Idle { link, since: Instant::now() });
        if links.closer.as_ref().is_none_or(JoinHandle::is_finished) {
            links.closer = Some(runtime.spawn(close_the_stale(Arc::downgrade(&self.0))));
        }
    }
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, Links> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Links {
    fn drop(&mut self) {
        if let Some(closer) = &self.closer {
            closer.abort();
        }
    }
}

impl Idle {
    fn is_fresh(&self, keep_for: Duration) -> bool {
        self.since.elapsed() < keep_for && self.link.made().elapsed() < LONGEST_LIFE
    }
}

/// Ends when nothing is kept, and with the client.
async fn close_the_stale(shared: Weak<Shared>) {
    loop {
        let Some(wait) = shared.upgrade().map(|shared| shared.keep_for / 4) else { return };
        tokio::time::sleep(wait).await;
        let Some(shared) = shared.upgrade() else { return };
        let mut links = shared.lock();
        for idle in links.by_destination.values_mut() {
            idle.retain_mut(|idle| idle.is_fresh(shared.keep_for) && idle.link.is_quiet());
        }
        links.by_destination.retain(|_, idle| !idle.is_empty());
        if links.by_destination.is_empty() {
            links.closer = None;
            return;
        }
    }
}
