//! One attempt: one message, once, through the first relay that takes or refuses it.

use std::sync::Arc;

use postrider_actors::{Outcome, Reason};
use tokio::time::Instant;
use tokio_rustls::TlsConnector;

use super::config::{SmtpConfig, SmtpSetupError};
use super::connection::{Connection, Opener};
use super::judge::{Stage, is_of_the_session, judge, wants_mending};
use super::pool::{Lent, Pool};
use super::relay::{Relay, Security};
use super::resolver::Resolver;
use super::standing::Standing;
use super::transaction::Refused;
use super::wire;
use crate::mail::Message;
use crate::metrics;
use crate::outbound::tls;

/// The part of an attempt's time that is kept for the message and the answer to its final dot.
const KEPT_FOR_THE_MESSAGE: u32 = 4;

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
    /// The relay took or refused the message, or may have taken it.
    Ended(Result<(), Refused>),
    /// The relay could not be used, or the session ended before the message went out.
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
    /// The relays are tried in order, each with an equal share of the time that is left, until one takes the message,
    /// refuses it, or may have taken it. Where none did, the reason is the first that an operator has to mend (the login,
    /// TLS), or else that of the relay tried first; the message fails only where every relay was heard, and none can ever
    /// take it.
    pub async fn send(&self, message: &Message) -> Outcome {
        if let Err(reason) = wire::check(message) {
            return Outcome::failed(reason);
        }
        let deadline = Instant::now() + self.total_timeout;
        let begin_by = deadline - self.total_timeout / KEPT_FOR_THE_MESSAGE;
        let order = self.standing.order();
        let (mut unusable, mut unsuited): (Option<Reason>, Option<Reason>) = (None, None);
        for (tried, relay) in order.iter().enumerate() {
            let still_to_try = u32::try_from(order.len() - tried).unwrap_or(u32::MAX);
            let share = begin_by.saturating_duration_since(Instant::now()) / still_to_try;
            match self.try_relay(*relay, message, Instant::now() + share, deadline).await {
                Tried::Ended(end) => {
                    self.note(*relay, end);
                    return end.map_or_else(|refused| judge(refused.stage, refused.reason), |()| Outcome::Succeeded);
                }
                Tried::Unusable(reason) => {
                    self.note_failure(*relay, reason);
                    if unusable.is_none_or(|known| wants_mending(reason) && !wants_mending(known)) {
                        unusable = Some(reason);
                    }
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
    /// gone before anything of the message was sent. A relay that takes its time is not asked twice.
    async fn try_relay(&self, relay: usize, message: &Message, begin_by: Instant, deadline: Instant) -> Tried {
        if let Some(kept) = self.kept(relay, begin_by).await {
            match tried(self.transact(relay, kept, message, begin_by, deadline).await) {
                Tried::Unusable(reason) if reason != Reason::Timeout => {}
                tried => return tried,
            }
        }
        match self.opener.open(&self.relays[relay], begin_by).await {
            Ok(connection) => {
                metrics::count_relay_connection(relay);
                tried(self.transact(relay, Lent::fresh(connection), message, begin_by, deadline).await)
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
        begin_by: Instant,
        deadline: Instant,
    ) -> Result<(), Refused> {
        let end = lent.connection.transact(message, begin_by, deadline, &self.opener.stages).await;
        if lent.connection.can_go_on(&end)
            && let Some(done) = self.pool.give_back(relay, lent)
        {
            done.quit().await;
        }
        end
    }

    /// Remembers how a transaction ended: a relay that broke it off is tried last, as one that could not be used is.
    fn note(&self, relay: usize, end: Result<(), Refused>) {
        match end {
            Err(Refused { reason, .. }) if is_of_the_session(reason) => self.note_failure(relay, reason),
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
        Err(Refused { stage: Stage::Envelope, reason }) if is_of_the_session(reason) => Tried::Unusable(reason),
        end => Tried::Ended(end),
    }
}

impl std::fmt::Debug for Smtp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Smtp").field("relays", &self.relays).finish_non_exhaustive()
    }
}
