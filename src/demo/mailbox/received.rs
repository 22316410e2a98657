//! A message that was taken, and how it is read.

use std::borrow::Cow;

use encodify::qp;

/// A message that was taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// The envelope's sender.
    pub from: String,
    /// The envelope's recipient.
    pub to: String,
    /// Header and body, as they were sent, without dot-stuffing.
    pub bytes: Vec<u8>,
    /// Which connection brought it, from 0.
    pub connection: usize,
}

impl Received {
    /// The message, which is ASCII.
    pub fn text(&self) -> String {
        self.ascii().into_owned()
    }

    fn ascii(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.bytes)
    }

    /// The header as it was sent, line for line.
    pub fn header(&self) -> String {
        let message = self.ascii();
        message.split("\r\n\r\n").next().unwrap_or_default().to_owned()
    }

    /// The value of a header field, unfolded (RFC 5322 2.2.3).
    pub fn field(&self, name: &str) -> Option<String> {
        let unfolded = self.header().replace("\r\n ", " ").replace("\r\n\t", " ");
        let mut fields = unfolded.split("\r\n").filter_map(|line| line.split_once(": "));
        fields.find(|(field, _)| field.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_owned())
    }

    /// The first part, which is the plain text, decoded (RFC 2045 6.7); `None` where it is not quoted-printable.
    pub fn plain_text(&self) -> Option<String> {
        let message = self.ascii();
        let part = message.split("\r\n\r\n").nth(1)?;
        if !part.to_ascii_lowercase().contains("content-transfer-encoding: quoted-printable") {
            return None;
        }
        let after_its_header = message.splitn(3, "\r\n\r\n").nth(2)?;
        let encoded = after_its_header.split("\r\n--").next()?;
        let decoded = qp::BODY.decode(encoded).ok()?;
        Some(String::from_utf8_lossy(&decoded).replace("\r\n", "\n"))
    }
}
