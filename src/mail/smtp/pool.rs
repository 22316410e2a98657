//! Connections between two messages. Nothing runs here by itself: one past its limits goes at the next look.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

use super::config::ConnectionLimits;

/// The idle connections of each relay. One is either here or lent to a single transaction; a transaction that is
/// dropped takes its connection with it.
pub(super) struct Pool<C> {
    limits: ConnectionLimits,
    idle: Vec<Mutex<Vec<Idle<C>>>>,
}

/// A connection and what it has behind it.
pub(super) struct Lent<C> {
    pub(super) connection: C,
    opened: Instant,
    messages: u32,
}

struct Idle<C> {
    lent: Lent<C>,
    since: Instant,
}

/// What a look into the pool brings.
pub(super) struct Taken<C> {
    /// The one that was used last.
    pub(super) usable: Option<Lent<C>>,
    /// Past a limit: to be closed in order.
    pub(super) expired: Vec<C>,
}

impl<C> Lent<C> {
    /// A connection that has just been made.
    pub(super) fn fresh(connection: C) -> Self {
        Self { connection, opened: Instant::now(), messages: 0 }
    }
}

impl<C> Pool<C> {
    pub(super) fn new(limits: ConnectionLimits, relays: usize) -> Self {
        Self { limits, idle: (0..relays).map(|_| Mutex::default()).collect() }
    }

    /// Takes the connection of a relay that was used last, and all that are past a limit.
    pub(super) fn take(&self, relay: usize) -> Taken<C> {
        let mut idle = self.of(relay);
        let now = Instant::now();
        let is_old =
            |one: &mut Idle<C>| now - one.since >= self.limits.idle || now - one.lent.opened >= self.limits.age;
        let expired = idle.extract_if(.., is_old).map(|one| one.lent.connection).collect();
        Taken { usable: idle.pop().map(|one| one.lent), expired }
    }

    /// Takes a connection back after a transaction. It is returned where it may not be used again.
    pub(super) fn give_back(&self, relay: usize, mut lent: Lent<C>) -> Option<C> {
        lent.messages += 1;
        let since = Instant::now();
        let is_done = lent.messages >= self.limits.messages
            || since - lent.opened >= self.limits.age
            || self.limits.idle.is_zero();
        if is_done {
            return Some(lent.connection);
        }
        self.of(relay).push(Idle { lent, since });
        None
    }

    /// Takes all.
    pub(super) fn drain(&self) -> Vec<C> {
        (0..self.idle.len())
            .flat_map(|relay| std::mem::take(&mut *self.of(relay)))
            .map(|one| one.lent.connection)
            .collect()
    }

    fn of(&self, relay: usize) -> MutexGuard<'_, Vec<Idle<C>>> {
        self.idle[relay].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::advance;

    use super::*;

    const LIMITS: ConnectionLimits =
        ConnectionLimits { messages: 3, age: Duration::from_secs(60), idle: Duration::from_secs(10) };

    fn taken(pool: &Pool<&'static str>) -> (Option<&'static str>, Vec<&'static str>) {
        let taken = pool.take(0);
        (taken.usable.map(|lent| lent.connection), taken.expired)
    }

    #[tokio::test(start_paused = true)]
    async fn the_connection_used_last_is_used_next_and_only_for_its_relay() {
        let pool = Pool::new(LIMITS, 2);
        assert_eq!(pool.give_back(0, Lent::fresh("a")), None);
        assert_eq!(pool.give_back(0, Lent::fresh("b")), None);
        assert_eq!(pool.give_back(1, Lent::fresh("c")), None);
        assert_eq!(taken(&pool), (Some("b"), vec![]));
        assert_eq!(taken(&pool), (Some("a"), vec![]));
        assert_eq!(taken(&pool), (None, vec![]));
        assert_eq!(pool.drain(), ["c"]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_ends_at_its_message_limit() {
        let pool = Pool::new(LIMITS, 1);
        let mut lent = Some(Lent::fresh("a"));
        for _ in 0..2 {
            assert_eq!(pool.give_back(0, lent.take().unwrap_or_else(|| Lent::fresh("none"))), None);
            lent = pool.take(0).usable;
        }
        assert_eq!(lent.and_then(|lent| pool.give_back(0, lent)), Some("a"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_ends_idle_or_old() {
        let pool = Pool::new(LIMITS, 1);
        let _ = pool.give_back(0, Lent::fresh("idle"));
        advance(Duration::from_secs(9)).await;
        let _ = pool.give_back(0, Lent::fresh("kept"));
        advance(Duration::from_secs(1)).await;
        let look = pool.take(0);
        assert_eq!(look.expired, ["idle"]);
        let mut kept = look.usable;
        for _ in 0..2 {
            advance(Duration::from_secs(9)).await;
            let Some(mut lent) = kept.take() else { break };
            lent.messages = 0;
            assert_eq!(pool.give_back(0, lent), None);
            kept = pool.take(0).usable;
        }
        advance(LIMITS.age).await;
        assert_eq!(kept.and_then(|lent| pool.give_back(0, lent)), Some("kept"));
    }
}
