//! A message as it stands on the wire.

mod body;
mod compose;
pub(super) mod header_text;
mod unsubscribe;

use std::fmt;

use chrono::{DateTime, Utc};
use postrider_actors::{DeliveryId, Reason};

pub use self::compose::compose;
pub use self::header_text::check_header_text;

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
///
/// Its `Debug` shows the delivery alone: links in its bodies may be secret.
#[derive(Clone)]
pub struct Draft<'a> {
    /// Its Message-ID is `<delivery id@sender's domain>`.
    pub delivery: DeliveryId,
    /// Its `Date`: when the delivery was made, not when it is sent.
    pub date: DateTime<Utc>,
    /// From whom. Also the envelope's sender.
    pub from: &'a Mailbox,
    /// Where answers go, if not to the sender.
    pub reply_to: Option<&'a Mailbox>,
    /// To whom: the envelope's one recipient, and `To`.
    pub to: &'a EmailAddress,
    /// The subject.
    pub subject: &'a str,
    /// The body in plain text. Its line ends may be of any kind.
    pub text: &'a str,
    /// The body in HTML: whoever fills it in has escaped what he filled in.
    pub html: &'a str,
    /// The one-click unsubscribe link of a message that is subscribed to (RFC 8058): one https URI, which may hold
    /// no comma.
    pub unsubscribe: Option<&'a str>,
}

impl fmt::Debug for Draft<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Draft").field("delivery", &self.delivery).finish_non_exhaustive()
    }
}

/// A message that cannot be built. Never shows any of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ComposeError {
    /// The subject or a name holds a control character or a line break of any script. Nothing is stripped: who wrote
    /// it may have meant to add a header.
    #[error("the subject or a name holds a control character or a line break")]
    HeaderText,
    /// The date has no year of four digits from 1900 on (RFC 5322 3.3).
    #[error("the date is outside the years 1900 to 9999")]
    Date,
    /// The unsubscribe link is not exactly one https URI that can stand between `<` and `>` (RFC 8058 3.1, RFC 2369 2).
    #[error("the unsubscribe link is not one https URI")]
    UnsubscribeUri,
    /// A header line would be over 998 octets and cannot be folded (RFC 5322 2.1.1).
    #[error("a header line would be over 998 octets")]
    LineTooLong,
}

impl From<ComposeError> for Reason {
    fn from(_: ComposeError) -> Self {
        Self::InvalidMessage
    }
}

/// A message with its envelope, ready to be sent: lines ended by CRLF, and 7-bit bytes but for addresses whose local
/// part is not ASCII, which stand in its header as they are (RFC 6532 3.2).
#[derive(Clone, PartialEq, Eq)]
pub struct Message {
    from: EmailAddress,
    to: EmailAddress,
    needs_smtputf8: bool,
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

    /// Puts a header before all others. Its value is folded already.
    pub(super) fn with_first_header(mut self, name: &str, value: &str) -> Self {
        self.bytes.splice(..0, format!("{name}: {value}\r\n").into_bytes());
        self
    }

    /// It goes only to a relay that offers SMTPUTF8 (RFC 6531 3.4).
    pub fn needs_smtputf8(&self) -> bool {
        self.needs_smtputf8
    }
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Message").field("bytes", &self.bytes.len()).finish_non_exhaustive()
    }
}
