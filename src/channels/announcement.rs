//! announcement: an administrator's announcement, one e-mail for each recipient.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use postrider_actors::{Attempted, ChannelName, Lease, Outcome, QueueError, Reason, Transport};
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;
use uuid::Uuid;

use super::LEFT_FOR_NEWER;
use super::post::{Prepared, post};
use crate::channel::{Channel, Page};
use crate::content;
use crate::delivery::{InvalidDelivery, NewDelivery};
use crate::directory::Directory;
use crate::event::Occurred;
use crate::identity::{AccountId, AnnouncementId, AnnouncementSent};
use crate::links::Links;
use crate::mail::{Letter, Mailer};
use crate::queue::{Effect, Reads};
use crate::recorder::RecordError;

const NAME: &str = "announcement";
/// Recipients that are read and written at a time.
const PAGE: u32 = 2000;

/// What a row holds: ids alone. Address and text are read when it is sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AnnouncementPayload {
    /// The recipient.
    pub account: AccountId,
    /// What is announced.
    pub announcement: AnnouncementId,
}

/// The channel: no order, MAX_AGE 3 d. Its workers are its own, so that it never holds back the channel `email`.
///
/// Of the [`Directory`] it asks for `announcement_recipients` and `announcement`.
pub struct Announcement {
    directory: Arc<dyn Directory>,
    sending: Option<(Links, Arc<Mailer>)>,
}

impl Announcement {
    /// Past this age a delivery fails unsent.
    pub const MAX_AGE: Duration = Duration::from_secs(3 * 24 * 3600);

    /// Sends with `mailer`, whose connections are this channel's own.
    pub fn new(directory: Arc<dyn Directory>, links: Links, mailer: Mailer) -> Self {
        Self { directory, sending: Some((links, Arc::new(mailer))) }
    }

    /// For a process that records announcements and sends none. What it were given to send it would leave to others.
    pub fn recording(directory: Arc<dyn Directory>) -> Self {
        Self { directory, sending: None }
    }

    /// Its name.
    #[allow(clippy::expect_used)] // a constant that a test reads
    pub fn channel_name() -> ChannelName {
        NAME.parse().expect("a well-formed name")
    }
}

#[async_trait]
impl Channel for Announcement {
    fn name(&self) -> ChannelName {
        Self::channel_name()
    }

    fn max_age(&self) -> Duration {
        Self::MAX_AGE
    }

    /// None: there are too many for one list.
    async fn deliveries(&self, _: &mut PgConnection, _: &Occurred<'_>) -> Result<Vec<NewDelivery>, RecordError> {
        Ok(Vec::new())
    }

    async fn page(
        &self,
        connection: &mut PgConnection,
        event: &Occurred<'_>,
        after: Option<Uuid>,
    ) -> Result<Option<Page>, RecordError> {
        let Some(AnnouncementSent { announcement }) = event.of().copied() else { return Ok(None) };
        let after = after.map(AccountId);
        let recipients = self.directory.announcement_recipients(connection, announcement, after, PAGE).await?;
        let Some(last) = recipients.last().copied() else { return Ok(None) };
        let deliveries = recipients.into_iter().map(|account| delivery(account, announcement));
        Ok(Some(Page { deliveries: deliveries.collect::<Result<_, _>>()?, last: last.0 }))
    }

    fn transport(&self, reads: &Reads) -> Arc<dyn Transport<Effect>> {
        let Some((links, mailer)) = self.sending.clone() else { return Arc::new(LeftToOthers) };
        Arc::new(AnnouncementTransport { directory: Arc::clone(&self.directory), links, mailer, reads: reads.clone() })
    }
}

fn delivery(account: AccountId, announcement: AnnouncementId) -> Result<NewDelivery, InvalidDelivery> {
    let payload = AnnouncementPayload { account, announcement };
    NewDelivery::new(account.to_string(), format!("account {account}"), &payload)?.about(announcement.to_string())
}

struct LeftToOthers;

#[async_trait]
impl Transport<Effect> for LeftToOthers {
    async fn attempt(&self, _: &Lease) -> Attempted<Effect> {
        Outcome::Deferred { reason: Reason::LinkKey, wait: LEFT_FOR_NEWER }.into()
    }
}

struct AnnouncementTransport {
    directory: Arc<dyn Directory>,
    links: Links,
    mailer: Arc<Mailer>,
    reads: Reads,
}

#[async_trait]
impl Transport<Effect> for AnnouncementTransport {
    async fn attempt(&self, lease: &Lease) -> Attempted<Effect> {
        let Ok(payload) = serde_json::from_str::<AnnouncementPayload>(&lease.delivery.payload) else {
            return Outcome::Deferred { reason: Reason::UnreadablePayload, wait: LEFT_FOR_NEWER }.into();
        };
        post(lease, &self.mailer, self.prepare(payload)).await.into()
    }
}

impl AnnouncementTransport {
    /// The letter as it is now. No connection is held when it returns.
    async fn prepare(&self, payload: AnnouncementPayload) -> Result<Prepared, QueueError> {
        let AnnouncementPayload { account, announcement } = payload;
        let mut reading = self.reads.connection().await?;
        let found = self.directory.announcement(reading.get()?, announcement, account).await;
        let Some(mail) = reading.end(found)? else { return Ok(Prepared::Moot) };
        let unsubscribe = (!mail.essential).then(|| {
            let token = self.links.keys.unsubscribe_token(account);
            self.links.pages.unsubscribe(&token)
        });
        // RFC 8058 3.1 knows https alone; pages on this machine may have none.
        let one_click = unsubscribe.clone().filter(|link| link.starts_with("https://"));
        let content = content::Announcement {
            handle: mail.handle,
            subject: mail.subject,
            text: mail.text,
            page: self.links.pages.notification(mail.notification),
            unsubscribe,
        };
        Ok(Prepared::Letter(Letter { to: mail.address, content: content.into(), unsubscribe: one_click }))
    }
}
