//! The queue on PostgreSQL: one file for each thing that is done to it, its SQL beside it.
//!
//! Locks are taken in one order everywhere: the delivery's row, then its key's row in `delivery_orderings`, and the
//! key's row always with SKIP LOCKED except by [`Recorder::record`](crate::Recorder::record), whose caller may hold it for as long as
//! its transaction is open. Nothing here ever waits for such a transaction. A host that both records to a key and
//! operates on that key's deliveries in one transaction takes the locks the other way round, and may be ended by
//! PostgreSQL as the victim of a deadlock, as with any rows.

mod abandon;
pub mod audit;
mod channels;
mod claim;
mod clean_up;
mod count;
mod effect;
mod frontier;
mod give_back;
pub(crate) mod insert;
mod list;
mod migrate;
mod operate;
mod purge;
mod reads;
mod record;
mod release;
mod rows;
mod session;
mod victim;

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use postrider_actors::{
    AuditPolicy, ChannelName, ChannelPolicy, ClaimToken, CleanedUp, DeliveryId, Ended, FindingCount, Lease,
    PendingCount, Queue, QueueError, Recorded, Retention, Search,
};
use sqlx::pool::PoolConnection;
use sqlx::{PgConnection, PgPool, Postgres};

pub use self::channels::channels_with_rows;
pub use self::effect::{Effect, EffectFailed};
use self::frontier::Frontiers;
pub use self::list::{DeliveryRow, Listing, get, list};
pub use self::migrate::{MigrateError, SchemaError, check_schema, migrate, oldest_supported_server};
pub use self::operate::{OperateError, Operator, cancel, retry};
pub use self::purge::delete_of_owner;
pub(crate) use self::reads::READING_CONNECTIONS;
pub use self::reads::{Reading, Reads};
pub(crate) use self::rows::interval;
pub use self::session::{connect, connect_options, pool_options};

/// Of one statement of the actors' audit: there are several, within one call.
const AUDIT_STATEMENT_TIMEOUT: Duration = Duration::from_secs(2);

/// The queue as the actors use it, over a pool of Postrider's own.
#[derive(Debug, Clone)]
pub struct PgQueue {
    pool: PgPool,
    releases: Arc<release::Postponed>,
    frontiers: Arc<Frontiers>,
}

impl PgQueue {
    /// A queue over `pool`, whose database has been migrated. The pool is used by nobody else.
    pub fn new(pool: PgPool) -> Self {
        Self { pool, releases: Arc::default(), frontiers: Arc::default() }
    }

    /// The pool, for those who share it with the actors knowingly.
    pub fn pool(&self) -> &PgPool {
        &self.pool
    }

    async fn connection(&self, during: &'static str) -> Result<Held, QueueError> {
        let connection = self.pool.acquire().await.map_err(|error| queue_error(during, error))?;
        Ok(Held { connection: Some(connection), during })
    }
}

/// A connection that goes back to the pool only when its call came to an end. One whose call was dropped in the middle,
/// or failed, is closed: nobody inherits an open transaction or half an answer.
#[derive(Debug)]
struct Held {
    connection: Option<PoolConnection<Postgres>>,
    during: &'static str,
}

impl Held {
    fn get(&mut self) -> Result<&mut PgConnection, QueueError> {
        let closed = || queue_error(self.during, sqlx::Error::PoolClosed);
        self.connection.as_deref_mut().ok_or_else(closed)
    }

    /// Ends the call.
    fn end<T>(mut self, answer: Result<T, sqlx::Error>) -> Result<T, QueueError> {
        if answer.is_ok() {
            drop(self.connection.take());
        }
        answer.map_err(|error| queue_error(self.during, error))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(connection) = &mut self.connection {
            connection.close_on_drop();
        }
    }
}

/// Whether the server answered, and refused, or could not be reached at all.
pub(crate) fn queue_error(during: &'static str, error: sqlx::Error) -> QueueError {
    // Classes 08 (connection), 53 (resources), 57 (operator intervention): the server is there but not for us.
    let away = |code: &str| ["08", "53", "57"].iter().any(|class| code.starts_with(class));
    match &error {
        sqlx::Error::Database(database) if !database.code().is_some_and(|code| away(&code)) => {
            QueueError::Refused { during, source: Box::new(error) }
        }
        _ => QueueError::Unreachable { during, source: Box::new(error) },
    }
}

/// Each call once; a call that the server ended as the victim of a deadlock has done nothing.
impl PgQueue {
    async fn claim_once(
        &self,
        channel: &ChannelName,
        slots: NonZeroUsize,
        lease: Duration,
        search: Search,
    ) -> Result<Vec<Lease>, QueueError> {
        let mut held = self.connection("claiming").await?;
        let connection = held.get()?;
        let answer = async {
            if self.releases.worth_a_look() {
                match self.releases.release(&mut *connection).await {
                    // Refused, not unreachable: it will be tried again, and what is due is due.
                    Err(error @ sqlx::Error::Database(_)) => {
                        tracing::warn!(error = %error, "postponed releases were not done");
                    }
                    done => done?,
                }
            }
            let begin = self.frontiers.begin(channel, search);
            let claimed = claim::claim(connection, channel, slots, lease, begin).await?;
            self.frontiers.note(channel, &claimed);
            Ok(claimed.leases)
        };
        let answer = answer.await;
        held.end(answer)
    }

    async fn give_back_once(
        &self,
        channel: &ChannelName,
        leases: &[(DeliveryId, ClaimToken)],
    ) -> Result<(), QueueError> {
        let mut held = self.connection("giving leases back").await?;
        let answer = give_back::give_back(held.get()?, channel, leases).await;
        held.end(answer)
    }

    async fn clean_up_once(&self, retention: &Retention) -> Result<CleanedUp, QueueError> {
        let mut held = self.connection("cleaning up").await?;
        let answer = clean_up::clean_up(held.get()?, retention).await;
        held.end(answer)
    }
}

impl Queue for PgQueue {
    type Effect = Effect;

    async fn claim(
        &self,
        channel: &ChannelName,
        slots: NonZeroUsize,
        lease: Duration,
        search: Search,
    ) -> Result<Vec<Lease>, QueueError> {
        victim::again(|| self.claim_once(channel, slots, lease, search)).await
    }

    async fn record(&self, channel: &ChannelPolicy, ended: &[Ended<Effect>]) -> Result<Recorded, QueueError> {
        record::record(self, channel, ended).await
    }

    async fn give_back(&self, channel: &ChannelName, leases: &[(DeliveryId, ClaimToken)]) -> Result<(), QueueError> {
        victim::again(|| self.give_back_once(channel, leases)).await
    }

    async fn clean_up(&self, retention: &Retention) -> Result<CleanedUp, QueueError> {
        victim::again(|| self.clean_up_once(retention)).await
    }

    async fn count_pending(&self, channels: &[ChannelName]) -> Result<Vec<PendingCount>, QueueError> {
        // Dropped at its deadline or failed, a count leaves no number behind.
        let no_numbers = crate::metrics::NoNumbers::unless_counted(channels);
        let mut held = self.connection("counting").await?;
        let answer = count::count_pending(held.get()?, channels).await;
        let counts = held.end(answer)?;
        no_numbers.counted(&counts);
        Ok(counts)
    }

    async fn audit(&self, policy: &AuditPolicy) -> Result<Vec<FindingCount>, QueueError> {
        let no_findings = crate::metrics::NoFindings::unless_audited();
        let mut held = self.connection("auditing").await?;
        let answer = audit::audit(held.get()?, policy, AUDIT_STATEMENT_TIMEOUT).await;
        let audit = held.end(answer)?;
        let counts = audit.counts();
        no_findings.audited(&counts, audit.at);
        Ok(counts)
    }
}
