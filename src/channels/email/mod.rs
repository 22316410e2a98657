//! email: transactional messages over SMTP.

mod fan_out;
mod notices;
mod payload;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use postrider_actors::{Attempted, ChannelName, Lease, Outcome, QueueError, Reason, Transport};
use sqlx::PgConnection;

pub use self::payload::{EmailMessage, EmailPayload};
use super::LEFT_FOR_NEWER;
use super::post::{Prepared, post};
use crate::channel::Channel;
use crate::content::{RecoveryLink, VerificationLink};
use crate::delivery::NewDelivery;
use crate::directory::Directory;
use crate::event::Occurred;
use crate::links::Links;
use crate::mail::{Letter, Mailer};
use crate::queue::{Effect, Reads};
use crate::recorder::RecordError;

const NAME: &str = "email";

/// The channel: no order, MAX_AGE 24 h.
///
/// Of the [`Directory`] it asks for `verification`, `recovery` and `notification`. A link's recipient is read when it is sent;
/// a notification is copied when it is recorded.
pub struct Email {
    directory: Arc<dyn Directory>,
    links: Links,
    mailer: Arc<Mailer>,
}

impl Email {
    /// Past this age a delivery fails unsent.
    pub const MAX_AGE: Duration = Duration::from_secs(24 * 3600);

    /// Sends with `mailer`, whose connections are this channel's own.
    pub fn new(directory: Arc<dyn Directory>, links: Links, mailer: Mailer) -> Self {
        Self { directory, links, mailer: Arc::new(mailer) }
    }

    /// Its name.
    #[allow(clippy::expect_used)] // a constant that a test reads
    pub fn channel_name() -> ChannelName {
        NAME.parse().expect("a well-formed name")
    }
}

#[async_trait]
impl Channel for Email {
    fn name(&self) -> ChannelName {
        Self::channel_name()
    }

    fn max_age(&self) -> Duration {
        Self::MAX_AGE
    }

    async fn deliveries(
        &self,
        connection: &mut PgConnection,
        event: &Occurred<'_>,
    ) -> Result<Vec<NewDelivery>, RecordError> {
        fan_out::deliveries(&*self.directory, &self.links.pages, connection, event).await
    }

    fn transport(&self, reads: &Reads) -> Arc<dyn Transport<Effect>> {
        let (directory, links) = (Arc::clone(&self.directory), self.links.clone());
        Arc::new(EmailTransport { directory, links, mailer: Arc::clone(&self.mailer), reads: reads.clone() })
    }
}

struct EmailTransport {
    directory: Arc<dyn Directory>,
    links: Links,
    mailer: Arc<Mailer>,
    reads: Reads,
}

#[async_trait]
impl Transport<Effect> for EmailTransport {
    async fn attempt(&self, lease: &Lease) -> Attempted<Effect> {
        let Ok(payload) = serde_json::from_str::<EmailPayload>(&lease.delivery.payload) else {
            return Outcome::Deferred { reason: Reason::UnreadablePayload, wait: LEFT_FOR_NEWER }.into();
        };
        post(lease, &self.mailer, self.prepare(payload)).await.into()
    }
}

impl EmailTransport {
    /// The letter as it is now. No connection is held when it returns.
    async fn prepare(&self, payload: EmailPayload) -> Result<Prepared, QueueError> {
        match payload.message {
            EmailMessage::VerificationLink { address } => {
                let mut reading = self.reads.connection().await?;
                let found = self.directory.verification(reading.get()?, payload.account, address).await;
                let Some(to) = reading.end(found)? else { return Ok(Prepared::Moot) };
                let token = self.links.keys.verification_token_for(address, &to.token_digest);
                let Some(token) = token else { return Ok(Prepared::Impossible(Reason::LinkKey)) };
                let link = self.links.pages.verification(&token);
                Ok(Prepared::letter(to.address, VerificationLink { handle: to.handle, link }))
            }
            EmailMessage::RecoveryLink { recovery, address } => {
                let mut reading = self.reads.connection().await?;
                let found = self.directory.recovery(reading.get()?, recovery, address).await;
                let Some(found) = reading.end(found)? else { return Ok(Prepared::Moot) };
                let (to, expires_at) = (found.to, found.expires_at);
                let token = self.links.keys.recovery_token_for(recovery, &to.token_digest);
                let Some(token) = token else { return Ok(Prepared::Impossible(Reason::LinkKey)) };
                let link = self.links.pages.recovery(&token);
                Ok(Prepared::letter(to.address, RecoveryLink { handle: to.handle, link, expires_at }))
            }
            EmailMessage::Notification { address, notice, .. } => {
                Ok(Prepared::Letter(Letter { to: address, content: *notice, unsubscribe: None }))
            }
        }
    }
}
