//! A message as it stands on the wire.

use chrono::{DateTime, Utc};
use mail_send::mail_builder::MessageBuilder;
use postrider_actors::DeliveryId;

use super::address::EmailAddress;

/// Who a message is from, or answers go to: an address with a name for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mailbox {
    /// Shown by mail clients.
    pub name: Option<String>,
    /// The address.
    pub address: EmailAddress,
}

/// What a message is made of. The same draft gives the same bytes, in every attempt and every process.
#[derive(Debug, Clone)]
pub struct Draft<'a> {
    /// Its Message-ID is `<delivery id@sender's domain>`.
    pub delivery: DeliveryId,
    /// Its `Date`: when the delivery was made, not when it is sent.
    pub date: DateTime<Utc>,
    /// From whom. Also the envelope's sender.
    pub from: &'a Mailbox,
    /// To whom: the envelope's one recipient, and `To`.
    pub to: &'a EmailAddress,
    /// The subject.
    pub subject: &'a str,
    /// The body in plain text.
    pub text: &'a str,
    /// The body in HTML.
    pub html: &'a str,
    /// The one-click unsubscribe link of a message that is subscribed to (RFC 8058).
    pub unsubscribe: Option<&'a str>,
}

/// A message that cannot be built. Never shows any of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ComposeError {
    /// It could not be written.
    #[error("the message could not be written")]
    Unwritable,
}

/// A message with its envelope, ready to be sent: 7-bit bytes, lines ended by CRLF.
#[derive(Clone, PartialEq, Eq)]
pub struct Message {
    from: EmailAddress,
    to: EmailAddress,
    bytes: Vec<u8>,
}

impl Message {
    /// The envelope's sender.
    pub fn from(&self) -> &EmailAddress {
        &self.from
    }

    /// The envelope's recipient.
    pub fn to(&self) -> &EmailAddress {
        &self.to
    }

    /// Header and body, without dot-stuffing.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// It goes only to a relay that offers SMTPUTF8 (RFC 6531 3.4).
    pub fn needs_smtputf8(&self) -> bool {
        self.from.needs_smtputf8() || self.to.needs_smtputf8()
    }
}

impl std::fmt::Debug for Message {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Message").field("bytes", &self.bytes.len()).finish_non_exhaustive()
    }
}

/// Builds the message of a draft.
///
/// # Errors
/// See [`ComposeError`].
pub fn compose(draft: &Draft<'_>) -> Result<Message, ComposeError> {
    let bytes = MessageBuilder::new()
        .from(draft.from.address.to_string())
        .to(draft.to.to_string())
        .message_id(format!("{}@{}", draft.delivery, draft.from.address.domain()))
        .date(draft.date.timestamp())
        .subject(draft.subject)
        .text_body(draft.text)
        .html_body(draft.html)
        .write_to_vec()
        .map_err(|_| ComposeError::Unwritable)?;
    Ok(Message { from: draft.from.address.clone(), to: draft.to.clone(), bytes })
}
