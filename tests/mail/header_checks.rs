//! The checks of `tests/data/smtp_message.md` that concern the header.

use std::collections::HashSet;

use chrono::TimeDelta;
use postrider::mail::{AddressError, ComposeError, EmailAddress, check_header_text};
use postrider_actors::Reason;

use crate::corpus::corpus;
use crate::numbers::checks;
use crate::reader::read;
use crate::sample::{DELIVERY, LINK, Sample, mailbox};
use crate::wire::{lines, wire};

checks! { HEADER:
    1 smtp_message_01_each_header_once,
    2 smtp_message_02_date_in_english_with_a_numeric_zone,
    3 smtp_message_03_message_id_of_the_delivery_at_the_senders_domain,
    4 smtp_message_04_lines_of_78_octets_where_they_can_be_folded,
    5 smtp_message_05_cr_and_lf_only_together_and_no_nul,
    6 smtp_message_06_header_names_are_ascii_and_one_empty_line_ends_the_header,
    7 smtp_message_07_folded_only_before_white_space,
    8 smtp_message_08_line_breaks_in_a_header_are_refused,
    18 smtp_message_18_auto_submitted,
}

fn smtp_message_01_each_header_once() {
    let fixed = ["From", "To", "Subject", "Date", "Message-ID", "Auto-Submitted", "MIME-Version", "Content-Type"];
    let optional = ["Reply-To", "List-Unsubscribe", "List-Unsubscribe-Post"];
    for message in corpus() {
        let wire = wire(&message);
        let names: HashSet<_> = wire.names().into_iter().collect();
        assert_eq!(names.len(), wire.names().len(), "{:?}", wire.names());
        assert!(fixed.iter().all(|name| names.contains(name)), "{names:?}");
        assert!(names.iter().all(|name| fixed.contains(name) || optional.contains(name)), "{names:?}");
    }
    let rich = Sample::rich().message();
    assert_eq!(wire(&rich).names().len(), fixed.len() + optional.len());
}

fn smtp_message_02_date_in_english_with_a_numeric_zone() {
    let message = Sample::default().message();
    assert_eq!(wire(&message).value("date"), "Thu, 01 Jan 2026 00:10:00 +0000");
    assert_eq!(read(&message).date, "2026-01-01T00:10:00+00:00");
    for (date, expected) in [
        ("1899-12-31T23:59:59Z", false),
        ("1900-01-01T00:00:00Z", true),
        ("9999-12-31T23:59:59Z", true),
        ("+10000-01-01T00:00:00Z", false),
    ] {
        let composed = Sample { date: date.parse().unwrap(), ..Sample::default() }.compose();
        assert_eq!(composed.err(), (!expected).then_some(ComposeError::Date), "{date}");
    }
}

fn smtp_message_03_message_id_of_the_delivery_at_the_senders_domain() {
    let expected = format!("<{DELIVERY}@id.example.com>");
    assert_eq!(wire(&Sample::default().message()).value("message-id"), expected);
    // It follows from the delivery and the sender alone.
    let later = Sample { date: Sample::default().date + TimeDelta::hours(1), ..Sample::rich() };
    assert_eq!(wire(&later.message()).value("message-id"), expected);
    let other = Sample { delivery: "0190b5a4-8c7e-7c3a-9d52-3f1e6a7b8c9e".parse().unwrap(), ..Sample::default() };
    assert_ne!(wire(&other.message()).value("message-id"), expected);
    let international = Sample { from: mailbox("Ä", "josé@bücher.example"), ..Sample::default() };
    assert_eq!(wire(&international.message()).value("message-id"), format!("<{DELIVERY}@xn--bcher-kva.example>"));
}

fn smtp_message_04_lines_of_78_octets_where_they_can_be_folded() {
    for message in corpus() {
        for line in lines(message.bytes()) {
            // An address is one word, and the header's name stands before it.
            let is_address =
                line.ends_with(b">") && !line.trim_ascii_start().contains(&b' ') || line.starts_with(b"To: <");
            assert!(
                line.len() <= if is_address { 998 } else { 78 },
                "{}: {:?}",
                line.len(),
                String::from_utf8_lossy(line)
            );
        }
    }
}

fn smtp_message_05_cr_and_lf_only_together_and_no_nul() {
    for message in corpus() {
        for line in lines(message.bytes()) {
            assert!(!line.iter().any(|byte| b"\r\n\0".contains(byte)), "{:?}", String::from_utf8_lossy(line));
        }
    }
}

fn smtp_message_06_header_names_are_ascii_and_one_empty_line_ends_the_header() {
    for message in corpus() {
        let wire = wire(&message);
        for name in wire.names() {
            assert!(name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b':'), "{name}");
        }
        assert!(wire.header_lines().iter().all(|line| !line.is_empty()));
        assert!(wire.body.starts_with(b"--=_"), "{:?}", String::from_utf8_lossy(wire.body));
    }
}

fn smtp_message_07_folded_only_before_white_space() {
    let mut folded = 0;
    for message in corpus() {
        for line in wire(&message).header_lines() {
            assert!(!line.trim().is_empty());
            assert!(line.starts_with([' ', '\t']) || line.contains(": "), "{line:?}");
            folded += usize::from(line.starts_with(' '));
        }
    }
    assert!(folded > 100, "{folded}");
}

fn smtp_message_08_line_breaks_in_a_header_are_refused() {
    for wrong in [
        "\r\nBcc: v@e.x",
        "\r",
        "\n",
        "\0",
        "\u{85}",
        "\u{2028}",
        "\u{2029}",
        "\u{b}",
        "\u{c}",
        "\u{1c}",
        "\t",
        "\u{7f}",
        "\u{9b}",
    ] {
        for text in [format!("A{wrong}X: 1"), format!("{wrong}X: 1"), format!("é{wrong}"), format!("A{wrong}")] {
            let reply_to = Sample { reply_to: Some(mailbox(&text, "a@b.example")), ..Sample::default() };
            assert_eq!(check_header_text(&text), Err(ComposeError::HeaderText), "{text:?}");
            for sample in [Sample::subject(&text), Sample::from_name(&text), reply_to] {
                assert_eq!(sample.compose(), Err(ComposeError::HeaderText), "{text:?}");
            }
            assert_eq!(EmailAddress::parse(&format!("a@{text}")), Err(AddressError::Character), "{text:?}");
        }
        let link = Sample::with_link(&format!("{LINK}{wrong}Bcc: v@e.x"));
        assert_eq!(link.compose(), Err(ComposeError::UnsubscribeUri), "{wrong:?}");
    }
    assert_eq!(Reason::from(ComposeError::HeaderText), Reason::InvalidMessage);
}

fn smtp_message_18_auto_submitted() {
    for message in corpus() {
        assert_eq!(wire(&message).value("auto-submitted"), "auto-generated");
    }
}
