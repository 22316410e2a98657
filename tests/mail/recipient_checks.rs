//! The checks of `tests/data/smtp_message.md` that concern addresses.

use postrider::mail::{AddressError, EmailAddress};

use crate::numbers::checks;
use crate::reader::{Reader, read};
use crate::sample::{Sample, address, mailbox};
use crate::wire::wire;

checks! { RECIPIENT:
    19 smtp_message_19_one_recipient_and_no_bcc,
    20 smtp_message_20_addresses_are_checked_before,
    21 smtp_message_21_lengths_of_addresses,
    22 smtp_message_22_domains_go_out_in_a_labels,
    23 smtp_message_23_local_parts_beyond_ascii_are_never_encoded,
    24 smtp_message_24_an_ascii_message_does_without_smtputf8,
    32 smtp_message_32_no_address_can_end_a_command,
}

fn smtp_message_19_one_recipient_and_no_bcc() {
    let mut reader = Reader::start();
    for to in [
        "ada@example.org",
        "x@bücher.example",
        "\"a b\"@example.com",
        "\"a@b, c\"@example.com",
        "user@[IPv6:2001:db8::1]",
    ] {
        let message = Sample { to: address(to), ..Sample::rich() }.message();
        assert_eq!(*message.to(), address(to));
        assert_eq!(wire(&message).value("to"), format!("<{}>", message.to()));
        let read = reader.read(&message);
        assert_eq!(read.mailbox("to"), ("", message.to().to_string().as_str()));
        assert!(!read.headers.iter().any(|(name, _)| ["bcc", "cc"].contains(&name.to_lowercase().as_str())));
    }
}

fn smtp_message_20_addresses_are_checked_before() {
    for wrong in ["a", "@b.example", "a@", "a@b@c.example", "a b@c.example", "a@c example", "a\u{1}@c.example"] {
        assert!(EmailAddress::parse(wrong).is_err(), "{wrong:?}");
    }
    assert!(EmailAddress::parse("\"a@b\"@c.example").is_ok());
}

fn smtp_message_21_lengths_of_addresses() {
    let local_part = |length| EmailAddress::parse(&format!("{}@b.example", "l".repeat(length)));
    assert!(local_part(64).is_ok());
    assert_eq!(local_part(65), Err(AddressError::LocalPartTooLong));
    let path = |length: usize| EmailAddress::parse(&format!("a@{}{}", "d.".repeat(100), "e".repeat(length - 4 - 200)));
    assert!(path(256).is_ok());
    assert_eq!(path(257), Err(AddressError::TooLong));
}

fn smtp_message_22_domains_go_out_in_a_labels() {
    let message = Sample { to: address("x@bücher.example"), ..Sample::default() }.message();
    assert_eq!(wire(&message).value("to"), "<x@xn--bcher-kva.example>");
    assert!(!message.needs_smtputf8() && message.bytes().is_ascii());
}

fn smtp_message_23_local_parts_beyond_ascii_are_never_encoded() {
    let message = Sample { to: address("josé@bücher.example"), ..Sample::rich() }.message();
    assert!(message.needs_smtputf8());
    assert_eq!(wire(&message).value("to"), "<josé@xn--bcher-kva.example>");
    // Nothing else is beyond ASCII (RFC 6532 3.2).
    let text = String::from_utf8(message.bytes().to_vec()).unwrap();
    assert_eq!(text.chars().filter(|character| !character.is_ascii()).collect::<String>(), "é");
    let read = read(&message);
    assert_eq!(read.mailbox("to"), ("", "josé@xn--bcher-kva.example"));
    assert_eq!(read.value("subject"), Sample::rich().subject);
}

fn smtp_message_24_an_ascii_message_does_without_smtputf8() {
    let accented = mailbox("Ada", "josé@example.com");
    let samples = [
        (Sample::default(), false),
        (Sample::rich(), false),
        (Sample { to: address("x@bücher.example"), ..Sample::rich() }, false),
        (Sample { to: accented.address.clone(), ..Sample::default() }, true),
        (Sample { from: accented.clone(), ..Sample::default() }, true),
        (Sample { reply_to: Some(accented), ..Sample::default() }, true),
    ];
    for (sample, expected) in samples {
        let message = sample.message();
        assert_eq!(message.needs_smtputf8(), expected);
        assert_eq!(message.bytes().is_ascii(), !expected, "it is needed exactly where a byte is beyond ASCII");
    }
}

fn smtp_message_32_no_address_can_end_a_command() {
    for wrong in ["\r", "\n", "\0", ">", "\r\nRCPT TO:<w@e.x>", "> SIZE=1", "\u{85}", "\u{2028}"] {
        for text in
            [format!("v{wrong}@e.x"), format!("\"v{wrong}\"@e.x"), format!("v@e.x{wrong}"), format!("{wrong}v@e.x")]
        {
            assert_eq!(EmailAddress::parse(&text), Err(AddressError::Character), "{text:?}");
        }
    }
}
