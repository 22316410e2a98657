//! Effects: what a channel writes in the transaction that records its outcome.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use sqlx::PgConnection;

/// The effect could not be applied; the record rolls back and the delivery is tried again after its lease.
#[derive(Debug, thiserror::Error)]
#[error("the effect of an outcome failed")]
pub struct EffectFailed(#[from] sqlx::Error);

type Applied<'c> = Pin<Box<dyn Future<Output = Result<(), EffectFailed>> + Send + 'c>>;

/// A closure over the recording transaction: it commits with the transition or not at all. It may run more than once
/// for one delivery, so it is idempotent.
///
/// ```
/// use postrider::queue::Effect;
///
/// let remember_remote_id = Effect::new(|connection| {
///     Box::pin(async move {
///         sqlx::query("update links set remote_id = $1 where subject = $2")
///             .bind("2819c223").bind("alice")
///             .execute(connection).await?;
///         Ok(())
///     })
/// });
/// # let _ = remember_remote_id;
/// ```
#[derive(Clone)]
pub struct Effect(Arc<dyn for<'c> Fn(&'c mut PgConnection) -> Applied<'c> + Send + Sync>);

impl Effect {
    /// An effect that runs `apply` on the recording connection.
    pub fn new(apply: impl for<'c> Fn(&'c mut PgConnection) -> Applied<'c> + Send + Sync + 'static) -> Self {
        Self(Arc::new(apply))
    }

    pub(super) async fn apply(&self, connection: &mut PgConnection) -> Result<(), EffectFailed> {
        (self.0)(connection).await
    }
}

impl fmt::Debug for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Effect")
    }
}
