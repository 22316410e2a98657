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
use tokio::time::error::Elapsed;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

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
                told = timeout(CALL_TIMEOUT, notify) => {
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

    /// Hears other processes, until `end`, and makes sure of it every `check_interval`.
    pub(crate) async fn listen(
        self,
        pool: PgPool,
        channels: Vec<ChannelName>,
        check_interval: Duration,
        end: CancellationToken,
    ) {
        tokio::select! {
            () = end.cancelled() => {}
            never = self.listen_for_ever(&pool, &channels, check_interval) => match never {},
        }
        self.0.listening.store(false, Ordering::Relaxed);
    }

    async fn listen_for_ever(
        &self,
        pool: &PgPool,
        channels: &[ChannelName],
        check_interval: Duration,
    ) -> std::convert::Infallible {
        let mut told = false;
        loop {
            let Err(error) = self.listen_once(pool, channels, check_interval).await;
            let heard_before = self.0.listening.swap(false, Ordering::Relaxed);
            if heard_before || !told {
                tracing::warn!(kind = error.as_str(), "notifications are not heard: polling alone wakes claimers");
                told = true;
            }
            tokio::time::sleep(BETWEEN_RECONNECTS).await;
        }
    }

    /// Listens until the connection is of no use. Whether it is shows only by hearing oneself: through a pooler in
    /// transaction mode LISTEN succeeds and nothing is ever heard, and so it is with a connection whose peer is gone.
    async fn listen_once(
        &self,
        pool: &PgPool,
        channels: &[ChannelName],
        check_interval: Duration,
    ) -> Result<std::convert::Infallible, Unheard> {
        let mut listener = timeout(CALL_TIMEOUT, PgListener::connect_with(pool)).await??;
        listener.ignore_pool_close_event(true);
        timeout(CALL_TIMEOUT, listener.listen(NOTIFICATION)).await??;
        let echo = format!("echo:{}", Uuid::new_v4());
        let mut awaits_echo = true;
        self.call_out(pool, &echo).await?;
        loop {
            let patience = if awaits_echo { CALL_TIMEOUT } else { check_interval };
            match timeout(patience, listener.try_recv()).await {
                Ok(Ok(Some(notification))) if notification.payload() == echo => {
                    awaits_echo = false;
                    if !self.0.listening.swap(true, Ordering::Relaxed) {
                        tracing::info!("notifications are heard: commits of other processes wake claimers at once");
                        // Whatever was committed while nobody listened.
                        self.hint_all(channels);
                    }
                }
                Ok(Ok(Some(notification))) => self.hint_named(notification.payload()),
                // The connection was lost and made anew: notifications in between are lost.
                Ok(Ok(None)) => self.hint_all(channels),
                Ok(Err(error)) => return Err(error.into()),
                Err(_elapsed) if awaits_echo => return Err(Unheard::Silence),
                Err(_elapsed) => {
                    awaits_echo = true;
                    self.call_out(pool, &echo).await?;
                }
            }
        }
    }

    async fn call_out(&self, pool: &PgPool, echo: &str) -> Result<(), Unheard> {
        let notify = sqlx::query("select pg_notify($1, $2)").bind(NOTIFICATION).bind(echo).execute(pool);
        timeout(CALL_TIMEOUT, notify).await??;
        Ok(())
    }

    fn hint_all(&self, channels: &[ChannelName]) {
        if let Some(engine) = self.0.engine.get() {
            channels.iter().for_each(|channel| engine.hint(channel));
        }
    }

    fn hint_named(&self, payload: &str) {
        if let Some(engine) = self.0.engine.get() {
            payload.split(',').filter_map(|name| name.parse().ok()).for_each(|channel| engine.hint(&channel));
        }
    }
}

/// Why notifications are not heard: a kind, for the log.
enum Unheard {
    Refused,
    Connection,
    Timeout,
    /// The server took everything, and nothing came.
    Silence,
}

impl Unheard {
    const fn as_str(&self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::Connection => "connection",
            Self::Timeout => "timeout",
            Self::Silence => "silence: a pooler in transaction mode?",
        }
    }
}

impl From<sqlx::Error> for Unheard {
    fn from(error: sqlx::Error) -> Self {
        match error {
            sqlx::Error::Database(_) => Self::Refused,
            sqlx::Error::PoolTimedOut => Self::Timeout,
            _ => Self::Connection,
        }
    }
}

impl From<Elapsed> for Unheard {
    fn from(_: Elapsed) -> Self {
        Self::Timeout
    }
}
