//! Waking claimers after a commit: this process's at once, other processes' by NOTIFY.
//!
//! A wake-up is a hint and never part of a business commit: NOTIFY inside it would take a lock that serialises every
//! writer of the database. It is sent afterwards, many commits in one, on connections of Postrider's own. Whatever is
//! lost, the poll every second finds.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use postrider_actors::{ChannelName, Engine};
use sqlx::PgPool;
use sqlx::postgres::PgListener;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

const NOTIFICATION: &str = "postrider_wake";
/// No more than one NOTIFY in this time: commits in between share the next.
const BETWEEN_NOTIFICATIONS: Duration = Duration::from_millis(10);
const BETWEEN_RECONNECTS: Duration = Duration::from_secs(2);
const CALL_TIMEOUT: Duration = Duration::from_secs(5);

/// Wakes claimers. Cheap to clone; without an engine it does nothing.
#[derive(Clone, Default)]
pub(crate) struct Waker(Arc<Shared>);

#[derive(Default)]
struct Shared {
    engine: OnceLock<Engine>,
    to_notify: Mutex<BTreeSet<ChannelName>>,
    something: Notify,
    listening: AtomicBool,
}

impl std::fmt::Debug for Waker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Waker")
    }
}

impl Waker {
    /// One that wakes nobody.
    pub(crate) fn silent() -> Self {
        Self::default()
    }

    pub(crate) fn attach(&self, engine: Engine) {
        let _ = self.0.engine.set(engine);
    }

    pub(crate) fn wake(&self, channels: &BTreeSet<ChannelName>) {
        let Some(engine) = self.0.engine.get() else { return };
        channels.iter().for_each(|channel| engine.hint(channel));
        self.0.to_notify.lock().unwrap_or_else(PoisonError::into_inner).extend(channels.iter().cloned());
        self.0.something.notify_one();
    }

    /// Whether other processes' commits are heard of; where not, polling alone finds them.
    pub(crate) fn is_listening(&self) -> bool {
        self.0.listening.load(Ordering::Relaxed)
    }

    /// Tells other processes, until `end`.
    pub(crate) async fn notify_others(self, pool: PgPool, end: CancellationToken) {
        loop {
            tokio::select! {
                () = end.cancelled() => return,
                () = self.0.something.notified() => {}
            }
            let channels = std::mem::take(&mut *self.0.to_notify.lock().unwrap_or_else(PoisonError::into_inner));
            let names: Vec<&str> = channels.iter().map(ChannelName::as_str).collect();
            let notify =
                sqlx::query("select pg_notify($1, $2)").bind(NOTIFICATION).bind(names.join(",")).execute(&pool);
            tokio::select! {
                () = end.cancelled() => return,
                told = tokio::time::timeout(CALL_TIMEOUT, notify) => {
                    if !matches!(told, Ok(Ok(_))) {
                        tracing::debug!("other processes were not told; they poll");
                    }
                }
            }
            tokio::select! {
                () = end.cancelled() => return,
                () = tokio::time::sleep(BETWEEN_NOTIFICATIONS) => {}
            }
        }
    }

    /// Hears other processes, until `end`.
    pub(crate) async fn listen(self, pool: PgPool, channels: Vec<ChannelName>, end: CancellationToken) {
        tokio::select! {
            () = end.cancelled() => {}
            never = self.listen_for_ever(&pool, &channels) => match never {},
        }
        self.0.listening.store(false, Ordering::Relaxed);
    }

    async fn listen_for_ever(&self, pool: &PgPool, channels: &[ChannelName]) -> std::convert::Infallible {
        loop {
            if let Err(error) = self.listen_once(pool, channels).await {
                if self.0.listening.swap(false, Ordering::Relaxed) {
                    tracing::warn!(kind = kind_of(&error), "notifications are not heard: polling alone wakes claimers");
                }
                tracing::debug!(error = ?error, "listening failed");
            }
            tokio::time::sleep(BETWEEN_RECONNECTS).await;
        }
    }

    async fn listen_once(&self, pool: &PgPool, channels: &[ChannelName]) -> Result<(), sqlx::Error> {
        let mut listener = PgListener::connect_with(pool).await?;
        listener.ignore_pool_close_event(true);
        listener.listen(NOTIFICATION).await?;
        self.0.listening.store(true, Ordering::Relaxed);
        let Some(engine) = self.0.engine.get() else { return Ok(()) };
        // Whatever was committed while nobody listened.
        channels.iter().for_each(|channel| engine.hint(channel));
        loop {
            match listener.try_recv().await? {
                Some(notification) => notification
                    .payload()
                    .split(',')
                    .filter_map(|name| name.parse().ok())
                    .for_each(|channel| engine.hint(&channel)),
                // The connection was lost and made anew: notifications in between are lost.
                None => channels.iter().for_each(|channel| engine.hint(channel)),
            }
        }
    }
}

fn kind_of(error: &sqlx::Error) -> &'static str {
    match error {
        sqlx::Error::Database(_) => "refused",
        sqlx::Error::PoolTimedOut => "timeout",
        _ => "connection",
    }
}
