//! From a content to a message in the relay's hands.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use postrider_actors::{DeliveryId, Outcome, Reason};

use super::address::EmailAddress;
use super::dkim::DkimSigner;
use super::message::{Draft, Mailbox, Message, compose};
use super::smtp::Smtp;
use crate::content::{Content, Renderer};

/// What one message says, to whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Letter {
    /// The address, as the domain holds it.
    pub to: String,
    /// What it says.
    pub content: Content,
    /// The one-click unsubscribe link, of a message that is subscribed to (RFC 8058).
    pub unsubscribe: Option<String>,
}

/// Renders letters, makes messages of them and hands those to the relays. Each channel has one of its own, with
/// connections of its own.
#[derive(Debug)]
pub struct Mailer {
    from: Mailbox,
    renderer: Renderer,
    smtp: Option<Smtp>,
    dkim: Option<Arc<DkimSigner>>,
}

impl Mailer {
    /// Sends as `from`. Without `smtp` nothing can be sent, and channels drop what they are given.
    pub fn new(from: Mailbox, renderer: Renderer, smtp: Option<Smtp>) -> Self {
        Self { from, renderer, smtp, dkim: None }
    }

    /// Signs what it sends, for relays that do not.
    pub fn signing(self, dkim: Arc<DkimSigner>) -> Self {
        Self { dkim: Some(dkim), ..self }
    }

    /// True where a relay is configured.
    pub fn has_relay(&self) -> bool {
        self.smtp.is_some()
    }

    /// One attempt. A letter that no message can be made of fails at once, with its kind.
    pub async fn send(&self, delivery: DeliveryId, letter: &Letter) -> Outcome {
        let Some(smtp) = &self.smtp else { return Outcome::Succeeded };
        match self.message(delivery, letter) {
            Ok(message) => smtp.send(&message).await,
            // Keys are the operator's to mend, so the delivery waits for them.
            Err(reason @ Reason::SigningKey) => Outcome::retry(reason),
            Err(reason) => Outcome::failed(reason),
        }
    }

    /// The same bytes for the same delivery and letter, whoever makes them and whenever.
    ///
    /// # Errors
    /// [`Reason::InvalidAddress`] or [`Reason::InvalidMessage`]; [`Reason::UnreadablePayload`] for an id that carries no
    /// time; [`Reason::SigningKey`] where the DKIM key does not sign.
    pub fn message(&self, delivery: DeliveryId, letter: &Letter) -> Result<Message, Reason> {
        let to = EmailAddress::parse(&letter.to).map_err(|_| Reason::InvalidAddress)?;
        let rendered = self.renderer.render(&letter.content).map_err(|_| Reason::InvalidMessage)?;
        let draft = Draft {
            delivery,
            date: created_at(delivery).ok_or(Reason::UnreadablePayload)?,
            from: &self.from,
            reply_to: None,
            to: &to,
            subject: &rendered.subject,
            text: &rendered.text,
            html: &rendered.html,
            unsubscribe: letter.unsubscribe.as_deref(),
        };
        let message = compose(&draft)?;
        match &self.dkim {
            Some(dkim) => dkim.sign(message).map_err(|_| Reason::SigningKey),
            None => Ok(message),
        }
    }
}

/// The time that a delivery's id holds (UUIDv7, RFC 9562 5.7): the `Date` of every attempt.
fn created_at(delivery: DeliveryId) -> Option<DateTime<Utc>> {
    let (seconds, nanoseconds) = delivery.as_uuid().get_timestamp()?.to_unix();
    DateTime::from_timestamp(i64::try_from(seconds).ok()?, nanoseconds)
}
