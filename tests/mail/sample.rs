//! The message that the tests compose unless they say otherwise.

use chrono::{DateTime, Utc};
use postrider::mail::{ComposeError, Draft, EmailAddress, Mailbox, Message, compose};
use postrider_actors::DeliveryId;

/// What a [`Draft`] borrows.
#[derive(Debug, Clone)]
pub struct Sample {
    pub delivery: DeliveryId,
    pub date: DateTime<Utc>,
    pub from: Mailbox,
    pub reply_to: Option<Mailbox>,
    pub to: EmailAddress,
    pub subject: String,
    pub text: String,
    pub html: String,
    pub unsubscribe: Option<String>,
}

pub const DELIVERY: &str = "0190b5a4-8c7e-7c3a-9d52-3f1e6a7b8c9d";
pub const LINK: &str = "https://id.example.com/unsubscribe?token=WpX3_j-0aQ";

pub fn address(text: &str) -> EmailAddress {
    EmailAddress::parse(text).unwrap_or_else(|error| panic!("{text:?} {error}"))
}

pub fn mailbox(name: &str, text: &str) -> Mailbox {
    Mailbox { name: Some(name.into()), address: address(text) }
}

impl Default for Sample {
    fn default() -> Self {
        Self {
            delivery: DELIVERY.parse().unwrap(),
            date: "2026-01-01T00:10:00.987Z".parse().unwrap(),
            from: mailbox("Example", "no-reply@id.example.com"),
            reply_to: None,
            to: address("ada@example.org"),
            subject: "Confirm your address".into(),
            text: "Hello,\n\nplease confirm: https://id.example.com/v/1?a=b\n".into(),
            html: "<p>Hello,</p>\n<p><a href=\"https://id.example.com/v/1?a=b\">confirm</a></p>\n".into(),
            unsubscribe: None,
        }
    }
}

impl Sample {
    pub fn draft(&self) -> Draft<'_> {
        Draft {
            delivery: self.delivery,
            date: self.date,
            from: &self.from,
            reply_to: self.reply_to.as_ref(),
            to: &self.to,
            subject: &self.subject,
            text: &self.text,
            html: &self.html,
            unsubscribe: self.unsubscribe.as_deref(),
        }
    }

    pub fn compose(&self) -> Result<Message, ComposeError> {
        compose(&self.draft())
    }

    pub fn message(&self) -> Message {
        self.compose().unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub fn subject(subject: &str) -> Self {
        Self { subject: subject.into(), ..Self::default() }
    }

    pub fn from_name(name: &str) -> Self {
        Self { from: mailbox(name, "no-reply@id.example.com"), ..Self::default() }
    }

    pub fn with_link(link: &str) -> Self {
        Self { unsubscribe: Some(link.into()), ..Self::default() }
    }

    /// One with every optional header, and text that has to be encoded everywhere.
    pub fn rich() -> Self {
        Self {
            from: mailbox("Zürich, \"Konten\"", "no-reply@id.example.com"),
            reply_to: Some(mailbox("支持", "help@bücher.example")),
            subject: "Bestätigen Sie Ihre Adresse: 確認してください, und zwar noch heute, nicht erst morgen".into(),
            text: "Grüße\r\n.\r\nFrom here on: a\rb =_ --=_\n\u{2028}\u{85}".into(),
            unsubscribe: Some(LINK.into()),
            ..Self::default()
        }
    }
}
