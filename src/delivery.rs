//! What a channel makes of an event: deliveries to be recorded with it.

use std::time::Duration;

use serde::Serialize;

/// The largest payload, as JSON text: 256 KiB.
pub const MAX_PAYLOAD_BYTES: usize = 256 * 1024;
/// The largest owner, subject and ordering key.
pub const MAX_KEY_BYTES: usize = 500;
/// The largest destination.
pub const MAX_DESTINATION_BYTES: usize = 8192;

/// A delivery that may not be recorded. Found before any SQL runs, so the caller's transaction is still good.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidDelivery {
    /// The payload is too large.
    #[error("payload is {got} bytes of JSON, the limit is {limit}")]
    PayloadTooLarge {
        /// Its size.
        got: usize,
        /// The limit.
        limit: usize,
    },
    /// The payload could not be written as JSON.
    #[error("payload could not be written as JSON (category: {0})")]
    PayloadNotJson(&'static str),
    /// PostgreSQL holds no NUL, neither in text nor in jsonb.
    #[error("{field} holds a NUL character, which PostgreSQL cannot store")]
    Nul {
        /// Which field.
        field: &'static str,
    },
    /// Only unordered deliveries come in pages: keys are locked all at once, in their own order.
    #[error("an ordered delivery cannot be made in a page")]
    OrderedInPage,
    /// A text that must say something.
    #[error("{field} is empty")]
    Empty {
        /// Which field.
        field: &'static str,
    },
    /// A text is too long.
    #[error("{field} is {got} bytes, the limit is {limit}")]
    TooLong {
        /// Which field.
        field: &'static str,
        /// Its size in bytes.
        got: usize,
        /// The limit.
        limit: usize,
    },
}

/// One message to one destination, before it is recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewDelivery {
    pub(crate) owner: String,
    pub(crate) subject: Option<String>,
    pub(crate) ordering_key: Option<String>,
    pub(crate) destination: String,
    pub(crate) delay: Duration,
    payload: String,
}

impl NewDelivery {
    /// A delivery for `owner` (a client, a receiver, a tenant) to `destination`. The payload copies all that the send
    /// needs and never holds a secret in plain text.
    ///
    /// # Errors
    /// A payload over 256 KiB, one that is not JSON or holds a NUL; an empty or overlong text.
    pub fn new(
        owner: impl Into<String>,
        destination: impl Into<String>,
        payload: &impl Serialize,
    ) -> Result<Self, InvalidDelivery> {
        let delivery = Self {
            owner: owner.into(),
            subject: None,
            ordering_key: None,
            destination: destination.into(),
            delay: Duration::ZERO,
            payload: json_text("payload", payload)?,
        };
        check_text("owner", &delivery.owner, MAX_KEY_BYTES)?;
        check_text("destination", &delivery.destination, MAX_DESTINATION_BYTES)?;
        Ok(delivery)
    }

    /// What it is about, so that newer deliveries can supersede it.
    ///
    /// # Errors
    /// Empty, over 500 bytes, or a NUL in it.
    pub fn about(mut self, subject: impl Into<String>) -> Result<Self, InvalidDelivery> {
        let subject = subject.into();
        check_text("subject", &subject, MAX_KEY_BYTES)?;
        self.subject = Some(subject);
        Ok(self)
    }

    /// Sends it one at a time with all others of this key in its channel, in commit order.
    ///
    /// # Errors
    /// Empty, over 500 bytes, or a NUL in it.
    pub fn ordered_by(mut self, key: impl Into<String>) -> Result<Self, InvalidDelivery> {
        let key = key.into();
        check_text("ordering key", &key, MAX_KEY_BYTES)?;
        self.ordering_key = Some(key);
        Ok(self)
    }

    /// Sends it no sooner than `delay` after it was recorded, by the database's clock.
    pub fn after(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// The payload as JSON text.
    pub fn payload(&self) -> &str {
        &self.payload
    }
}

/// JSON text that PostgreSQL can store.
pub(crate) fn json_text(field: &'static str, value: &impl Serialize) -> Result<String, InvalidDelivery> {
    let text = serde_json::to_string(value).map_err(|error| InvalidDelivery::PayloadNotJson(category(&error)))?;
    if text.len() > MAX_PAYLOAD_BYTES {
        return Err(InvalidDelivery::PayloadTooLarge { got: text.len(), limit: MAX_PAYLOAD_BYTES });
    }
    if has_escaped_nul(&text) {
        return Err(InvalidDelivery::Nul { field });
    }
    Ok(text)
}

fn category(error: &serde_json::Error) -> &'static str {
    match error.classify() {
        serde_json::error::Category::Io => "io",
        serde_json::error::Category::Syntax => "syntax",
        serde_json::error::Category::Data => "data",
        serde_json::error::Category::Eof => "eof",
    }
}

/// True where a string in the JSON text holds U+0000, which stands there as `\u0000` after an even run of backslashes.
fn has_escaped_nul(json: &str) -> bool {
    json.match_indices("\\u0000").any(|(at, _)| {
        let backslashes_before = json[..at].bytes().rev().take_while(|byte| *byte == b'\\').count();
        backslashes_before % 2 == 0
    })
}

fn check_text(field: &'static str, text: &str, limit: usize) -> Result<(), InvalidDelivery> {
    if text.is_empty() {
        return Err(InvalidDelivery::Empty { field });
    }
    if text.len() > limit {
        return Err(InvalidDelivery::TooLong { field, got: text.len(), limit });
    }
    if text.contains('\0') { Err(InvalidDelivery::Nul { field }) } else { Ok(()) }
}
