//! Messages to send.

use chrono::{TimeZone, Utc};
use postrider::mail::{Draft, EmailAddress, Mailbox, Message, compose};
use postrider_actors::{DeliveryId, Reason, ReplyCode};
use uuid::Uuid;

/// To this address, with this text.
pub fn message_with(to: &str, text: &str) -> Message {
    let from = Mailbox { name: None, address: EmailAddress::parse("noreply@sender.example").unwrap() };
    compose(&Draft {
        delivery: DeliveryId::from_uuid(Uuid::from_u128(0x0190_0000_0000_7000_8000_0000_0000_0001)),
        date: Utc.with_ymd_and_hms(2026, 1, 1, 0, 10, 0).unwrap(),
        from: &from,
        to: &EmailAddress::parse(to).unwrap(),
        reply_to: None,
        subject: "Hello",
        text,
        html: "<p>Hello</p>",
        unsubscribe: None,
    })
    .unwrap()
}

pub fn message_to(to: &str) -> Message {
    message_with(to, "Hello.")
}

pub fn message() -> Message {
    message_to("user@rcpt.example")
}

/// Recorded where a relay answered with this code.
pub fn code(code: u16) -> Reason {
    Reason::Code(ReplyCode::new(code).unwrap())
}
