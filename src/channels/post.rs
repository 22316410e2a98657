//! What the mail channels have in common: prepare a letter, then send it.

use std::time::Duration;

use postrider_actors::{Lease, Outcome, QueueError, Reason};

use crate::content::Content;
use crate::mail::{Letter, Mailer};
use crate::metrics::{Unsent, count_unsent};

/// How long a delivery waits whose letter could not be read of the database.
const UNTIL_READABLE: Duration = Duration::from_secs(5);

/// What became of preparing a letter.
pub(super) enum Prepared {
    /// It is to be sent.
    Letter(Letter),
    /// There is nothing to send any more.
    Moot,
    /// It cannot be made.
    Impossible(Reason),
}

impl Prepared {
    /// A letter without an unsubscribe link.
    pub(super) fn letter(to: String, content: impl Into<Content>) -> Self {
        Self::Letter(Letter { to, content: content.into(), unsubscribe: None })
    }
}

/// One attempt: what the database holds is read first, and nothing of it is held while the letter is sent. Without a
/// relay the delivery is dropped, so that none waits for ever.
pub(super) async fn post(
    lease: &Lease,
    mailer: &Mailer,
    prepare: impl Future<Output = Result<Prepared, QueueError>>,
) -> Outcome {
    let channel = &lease.delivery.channel;
    if !mailer.has_relay() {
        count_unsent(channel, Unsent::NoRelay);
        return Outcome::Succeeded;
    }
    match prepare.await {
        Ok(Prepared::Letter(letter)) => mailer.send(lease.delivery.id, &letter).await,
        Ok(Prepared::Moot) => {
            count_unsent(channel, Unsent::Moot);
            Outcome::Succeeded
        }
        Ok(Prepared::Impossible(reason)) => Outcome::failed(reason),
        Err(error) => {
            tracing::warn!(delivery = %lease.delivery.id, %channel, error = %error, "a letter could not be read");
            Outcome::Deferred { reason: Reason::Database, wait: UNTIL_READABLE }
        }
    }
}
