//! What Python's e-mail package reads in a message.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use postrider::mail::Message;
use serde::Deserialize;
use serde_json::json;
use std::collections::HashMap;

use crate::peer::Peer;

#[derive(Debug, PartialEq, Deserialize)]
pub struct Read {
    pub headers: Vec<(String, String)>,
    pub mailboxes: HashMap<String, Vec<(String, String)>>,
    pub date: String,
    #[serde(rename = "type")]
    pub content_type: String,
    pub parts: Vec<Part>,
    pub defects: Vec<String>,
}

#[derive(Debug, PartialEq, Deserialize)]
pub struct Part {
    #[serde(rename = "type")]
    pub content_type: String,
    pub charset: Option<String>,
    pub encoding: String,
    pub headers: Vec<String>,
    pub content: String,
}

/// One process, asked as often as needed.
pub struct Reader(Peer);

impl Reader {
    pub fn start() -> Self {
        Self(Peer::start("read_message.py"))
    }

    pub fn read(&mut self, message: &Message) -> Read {
        self.read_bytes(message.bytes())
    }

    /// A message as it stands on the wire or in a mailbox.
    pub fn read_bytes(&mut self, bytes: &[u8]) -> Read {
        let answer = self.0.ask(&json!({ "message": STANDARD.encode(bytes) }));
        serde_json::from_value(answer).unwrap()
    }
}

/// What is read in one message.
pub fn read(message: &Message) -> Read {
    Reader::start().read(message)
}

impl Read {
    /// The value of a header that stands there once.
    pub fn value(&self, name: &str) -> &str {
        let values: Vec<_> = self.headers.iter().filter(|header| header.0.eq_ignore_ascii_case(name)).collect();
        assert_eq!(values.len(), 1, "{name}: {values:?}");
        &values[0].1
    }

    /// The name and the address of a header's one mailbox.
    pub fn mailbox(&self, name: &str) -> (&str, &str) {
        let [(display_name, address)] = self.mailboxes[name].as_slice() else { panic!("{name}: {self:?}") };
        (display_name, address)
    }

    pub fn text(&self) -> &str {
        &self.parts[0].content
    }

    pub fn html(&self) -> &str {
        &self.parts[1].content
    }
}

/// Text as it is read back: its line ends are CRLF.
pub fn with_crlf(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n").replace('\n', "\r\n")
}
