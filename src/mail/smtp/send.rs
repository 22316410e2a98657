//! One attempt: one message, once, through the first relay that takes part in a transaction.

use std::sync::Arc;

use postrider_actors::{Outcome, Reason};
use tokio::time::Instant;
use tokio_rustls::TlsConnector;

use super::config::{SmtpConfig, SmtpSetupError};
use super::connection::{Connection, Opener};
use super::judge::{Stage, judge};
use super::pool::{Lent, Pool};
use super::relay::{Relay, Security};
use super::resolver::Resolver;
use super::standing::Standing;
use super::transaction::Refused;
use super::wire;
use crate::mail::Message;
use crate::metrics;
use crate::outbound::tls;

/// Hands messages to relays. Make one and share it; must be made and used within one tokio runtime.
///
/// See [the module](super) for what is promised.
pub struct Smtp {
    relays: Vec<Relay>,
    opener: Opener,
    pool: Pool<Connection>,
    standing: Standing,
    total_timeout: std::time::Duration,
}

/// What became of a message at one relay.
enum Tried {
    /// A transaction came to an end, or may have.
    Ended(Result<(), Refused>),
    /// The relay could not be used, or said 421: nothing of the message was sent.
    Unusable(Reason),
    /// The relay works, and can never take this message.
    Unsuited(Reason),
}

impl Smtp {
    /// Checks the settings, and reads the roots and the name servers where a relay needs them.
    ///
    /// # Errors
    /// [`SmtpSetupError`], which names the setting.
    pub fn new(config: SmtpConfig) -> Result<Self, SmtpSetupError> {
        config.check()?;
        let wants_tls = config.relays.iter().any(|relay| relay.security() != Security::Plain);
        let tls = if wants_tls || config.extra_roots.is_some() {
            Some(tls::client_config(config.extra_roots.as_deref())?)
        } else {
            None
        };
        let resolver = Resolver::new(config.name_server, &config.relays)
            .map_err(|source| SmtpSetupError::Resolver { source: Box::new(source) })?;
        let opener = Opener {
            resolver,
            connector: tls.map(|tls| TlsConnector::from(Arc::new(tls))),
            helo: config.helo,
            stages: config.stage_timeouts,
        };
        Ok(Self {
            pool: Pool::new(config.connections, config.relays.len()),
            standing: Standing::new(config.relays.len()),
            relays: config.relays,
            opener,
            total_timeout: config.total_timeout,
        })
    }

    /// Sends a message once. Dropping the future ends the attempt and closes its connection.
    ///
    /// The relays are tried in order, each with an equal share of the time that is left, until one takes part in a
    /// transaction. Where none did, the reason is that of the relay tried first; the message fails only where every
    /// relay was heard, and none can ever take it.
    pub async fn send(&self, message: &Message) -> Outcome {
        if let Err(reason) = wire::check(message) {
            return Outcome::failed(reason);
        }
        let deadline = Instant::now() + self.total_timeout;
        let order = self.standing.order();
        let (mut unusable, mut unsuited) = (None, None);
        for (tried, relay) in order.iter().enumerate() {
            let still_to_try = u32::try_from(order.len() - tried).unwrap_or(u32::MAX);
            let share = deadline.saturating_duration_since(Instant::now()) / still_to_try;
            match self.try_relay(*relay, message, Instant::now() + share, deadline).await {
                Tried::Ended(end) => {
                    self.note(*relay, end);
                    return end.map_or_else(|refused| judge(refused.stage, refused.reason), |()| Outcome::Succeeded);
                }
                Tried::Unusable(reason) => {
                    self.note_failure(*relay, reason);
                    unusable.get_or_insert(reason);
                }
                Tried::Unsuited(reason) => {
                    self.standing.worked(*relay);
                    unsuited.get_or_insert(reason);
                }
            }
        }
        match (unusable, unsuited) {
            (None, Some(reason)) => Outcome::failed(reason),
            (reason, _) => judge(Stage::Session, reason.unwrap_or(Reason::Connection)),
        }
    }

    /// Closes the idle connections in order. Connections made later are kept as before.
    pub async fn close(&self) {
        for connection in self.pool.drain() {
            connection.quit().await;
        }
    }

    /// Over a connection that was kept, or else over a fresh one; the fresh one too where the kept one turns out to be
    /// gone before anything of the message was sent.
    async fn try_relay(&self, relay: usize, message: &Message, open_by: Instant, deadline: Instant) -> Tried {
        if let Some(kept) = self.kept(relay, open_by).await {
            let end = self.transact(relay, kept, message, deadline).await;
            if !end.is_err_and(|refused| refused.stage == Stage::Envelope && is_gone(refused.reason)) {
                return tried(end);
            }
        }
        match self.opener.open(&self.relays[relay], open_by).await {
            Ok(connection) => {
                metrics::count_relay_connection(relay);
                tried(self.transact(relay, Lent::fresh(connection), message, deadline).await)
            }
            Err(reason) => Tried::Unusable(reason),
        }
    }

    /// An idle connection that answers.
    async fn kept(&self, relay: usize, deadline: Instant) -> Option<Lent<Connection>> {
        let taken = self.pool.take(relay);
        for connection in taken.expired {
            connection.quit().await;
        }
        let mut lent = taken.usable?;
        lent.connection.is_alive(deadline, &self.opener.stages).await.then_some(lent)
    }

    /// One transaction, after which the connection is kept, ended or dropped.
    async fn transact(
        &self,
        relay: usize,
        mut lent: Lent<Connection>,
        message: &Message,
        deadline: Instant,
    ) -> Result<(), Refused> {
        let end = lent.connection.transact(message, deadline, &self.opener.stages).await;
        if lent.connection.can_go_on(&end)
            && let Some(done) = self.pool.give_back(relay, lent)
        {
            done.quit().await;
        }
        end
    }

    /// Remembers how a relay took part in a transaction: one that broke it off is tried last, as one that could not be
    /// used is.
    fn note(&self, relay: usize, end: Result<(), Refused>) {
        match end {
            Err(Refused { reason, .. }) if !matches!(reason, Reason::Code(_)) || is_gone(reason) => {
                self.note_failure(relay, reason);
            }
            _ => self.standing.worked(relay),
        }
    }

    fn note_failure(&self, relay: usize, reason: Reason) {
        if self.standing.failed(relay) {
            tracing::warn!(relay, %reason, "a mail relay cannot be used; for 30 s it is tried after all others");
        }
    }
}

fn tried(end: Result<(), Refused>) -> Tried {
    match end {
        Err(Refused { stage: Stage::Session, reason }) => Tried::Unsuited(reason),
        Err(Refused { stage: Stage::Envelope, reason: reason @ Reason::Code(_) }) if is_gone(reason) => {
            Tried::Unusable(reason)
        }
        end => Tried::Ended(end),
    }
}

/// The connection broke, or the relay said that it ends the session (RFC 5321 3.8).
const fn is_gone(reason: Reason) -> bool {
    match reason {
        Reason::Connection => true,
        Reason::Code(code) => code.get() == 421,
        _ => false,
    }
}

impl std::fmt::Debug for Smtp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Smtp").field("relays", &self.relays).finish_non_exhaustive()
    }
}
