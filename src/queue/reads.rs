//! What transports read of the host's tables when they send.

use std::sync::Arc;

use postrider_actors::QueueError;
use sqlx::{PgConnection, PgPool};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::{Held, PgQueue, queue_error};

/// Connections that all transports together may hold at once, of those of the actors' pool.
pub(crate) const READING_CONNECTIONS: u32 = 2;

/// Connections for what a transport reads before it sends, of Postrider's own pool: a host that exhausts its pool keeps
/// no message waiting, and readers never take the connections that claims and outcomes need. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Reads {
    queue: PgQueue,
    permits: Arc<Semaphore>,
}

impl Reads {
    /// Reads over `pool`, of which they hold no more than two connections at once.
    pub fn new(pool: PgPool) -> Self {
        Self { queue: PgQueue::new(pool), permits: Arc::new(Semaphore::new(READING_CONNECTIONS as usize)) }
    }

    /// A connection for one read. Nothing is sent while it is held.
    ///
    /// # Errors
    /// None in time.
    pub async fn connection(&self) -> Result<Reading, QueueError> {
        const DURING: &str = "reading what is sent";
        let closed = |_| queue_error(DURING, sqlx::Error::PoolClosed);
        let permit = Arc::clone(&self.permits).acquire_owned().await.map_err(closed)?;
        Ok(Reading { held: self.queue.connection(DURING).await?, _permit: permit })
    }
}

/// A connection for one read, in no transaction. Dropped before [`end`](Self::end), it is closed.
#[derive(Debug)]
pub struct Reading {
    held: Held,
    _permit: OwnedSemaphorePermit,
}

impl Reading {
    /// The connection.
    ///
    /// # Errors
    /// None, in use.
    pub fn get(&mut self) -> Result<&mut PgConnection, QueueError> {
        self.held.get()
    }

    /// Ends the read and gives the connection back.
    ///
    /// # Errors
    /// The read's own.
    pub fn end<T>(self, answer: Result<T, sqlx::Error>) -> Result<T, QueueError> {
        self.held.end(answer)
    }
}
