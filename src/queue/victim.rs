//! Calls that the server ended because of somebody else: as the victim of a deadlock (40P01) or of a serialization
//! failure (40001).
//!
//! Postrider's own statements take their locks in one order and meet neither among themselves. A host that locks
//! Postrider's rows, or has triggers on them, may bring about either. Such a call has done nothing, so it is made again.

use std::future::Future;
use std::time::Duration;

use postrider_actors::QueueError;

/// How often a call is made in all.
const CALLS: u32 = 4;
/// Before the second call; longer before each that follows.
const PAUSE: Duration = Duration::from_millis(10);

/// Makes `call` until it ends other than as a victim, a bounded number of times.
pub(super) async fn again<T, F>(call: impl Fn() -> F + Send) -> Result<T, QueueError>
where
    F: Future<Output = Result<T, QueueError>> + Send,
{
    let mut made = 1;
    loop {
        match call().await {
            Err(error) if made < CALLS && is_victim(&error) => {
                tracing::debug!(made, error = %error, "ended as a victim, made again");
                tokio::time::sleep(PAUSE * made).await;
                made += 1;
            }
            ended => return ended,
        }
    }
}

fn is_victim(error: &QueueError) -> bool {
    let QueueError::Refused { source, .. } = error else { return false };
    let code = source.downcast_ref().and_then(sqlx::Error::as_database_error).and_then(|database| database.code());
    code.is_some_and(|code| matches!(&*code, "40P01" | "40001"))
}
