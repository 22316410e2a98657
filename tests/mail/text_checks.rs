//! The checks of `tests/data/smtp_message.md` that concern subjects and names.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use postrider::mail::Mailbox;

use crate::numbers::checks;
use crate::reader::{Reader, read};
use crate::sample::{Sample, address, mailbox};
use crate::wire::wire;

checks! { TEXT:
    9 smtp_message_09_text_beyond_ascii_is_in_encoded_words,
    10 smtp_message_10_encoded_words_split_no_character_and_no_quotes,
    11 smtp_message_11_spaces_between_encoded_words_are_inside_them,
    12 smtp_message_12_text_that_looks_encoded_shows_as_it_is,
    13 smtp_message_13_names_with_specials_are_quoted,
}

/// Texts that must be encoded, or must not be harmed by not being so.
const TEXTS: [&str; 19] = [
    "",
    "Confirm your address",
    "Bestätigen Sie Ihre Adresse",
    "確認してください、今すぐに、そしてもう一度、さらに続けて確認してくださいますようお願いいたします",
    "👩‍👩‍👧‍👦👩‍👩‍👧‍👦👩‍👩‍👧‍👦👩‍👩‍👧‍👦👩‍👩‍👧‍👦",
    "a\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}",
    " leading, trailing ",
    "two  spaces   and more",
    " ",
    "   ",
    "ü  ü   ü",
    "=?utf-8?Q?not_encoded?=",
    "=?utf-8?B?bm90?= and =?x",
    "a =? b ?= c",
    "?=_",
    "semi;colon, comma: \"quotes\" \\ (comment) <a@b.example>",
    "_under_score_ = é",
    "From: someone",
    "é\u{a0}\u{2003}é",
];

fn smtp_message_09_text_beyond_ascii_is_in_encoded_words() {
    let mut reader = Reader::start();
    let long = ["é".repeat(1_000), "w".repeat(2_000), "a é ".repeat(500), "lorem ipsum ".repeat(160)];
    for text in TEXTS.into_iter().chain(long.iter().map(String::as_str)) {
        for sample in [Sample::subject(text), Sample::from_name(text)] {
            let message = sample.message();
            let read = reader.read(&message);
            assert_eq!(read.value("subject"), sample.subject, "{text:?}");
            assert_eq!(read.mailbox("from"), (sample.from.name.as_deref().unwrap(), "no-reply@id.example.com"));
            assert_eq!(read.defects, <[String; 0]>::default(), "{text:?}");
            assert!(message.bytes().is_ascii());
            for line in wire(&message).header_lines().iter().filter(|line| line.contains("=?")) {
                assert!(line.len() <= 76, "{line:?}");
                assert!(words(line).iter().all(|word| word.len() <= 75), "{line:?}");
            }
        }
    }
}

/// The encoded words of a line.
fn words(line: &str) -> Vec<&str> {
    line.split(' ').filter(|word| word.starts_with("=?") && word.ends_with("?=") && word.len() > 4).collect()
}

fn smtp_message_10_encoded_words_split_no_character_and_no_quotes() {
    let mut reader = Reader::start();
    for text in ["é".repeat(400), "あ".repeat(400), "👍".repeat(400), format!("x{}", "👍é".repeat(300))] {
        for sample in [Sample::subject(&text), Sample::from_name(&text)] {
            let message = sample.message();
            let wire = wire(&message);
            let encoded: Vec<&str> = wire.header_lines().into_iter().flat_map(words).collect();
            assert!(encoded.len() > 10);
            // Each word alone reads as whole characters.
            let mut together = String::new();
            for word in encoded {
                let alone = decode(word);
                assert!(!alone.contains('\u{fffd}'), "{word}");
                together.push_str(&alone);
            }
            assert_eq!(together, text);
            assert!(!wire.value("from").contains("\"=?") && !wire.value("message-id").contains("=?"));
            assert_eq!(reader.read(&message).value("to"), "ada@example.org");
        }
    }
}

/// One encoded word, decoded for itself (RFC 2047 4).
fn decode(word: &str) -> String {
    let inner = word.strip_prefix("=?utf-8?").and_then(|rest| rest.strip_suffix("?=")).unwrap();
    let (encoding, payload) = inner.split_once('?').unwrap();
    let bytes = match encoding {
        "B" => STANDARD.decode(payload).unwrap(),
        "Q" => {
            let mut bytes = Vec::new();
            let mut rest = payload.bytes();
            while let Some(byte) = rest.next() {
                match byte {
                    b'=' => {
                        let hex = [rest.next().unwrap(), rest.next().unwrap()];
                        bytes.push(u8::from_str_radix(std::str::from_utf8(&hex).unwrap(), 16).unwrap());
                    }
                    b'_' => bytes.push(b' '),
                    _ => bytes.push(byte),
                }
            }
            bytes
        }
        _ => panic!("{word}"),
    };
    String::from_utf8_lossy(&bytes).into_owned()
}

fn smtp_message_11_spaces_between_encoded_words_are_inside_them() {
    let message = Sample::subject(&"é é  è ".repeat(60)).message();
    let subject = wire(&message).value("subject");
    assert!(words(&subject).len() > 5);
    // Nothing stands between them but the one space, which readers drop.
    assert_eq!(words(&subject).join(" "), subject);
    assert_eq!(subject.split(' ').map(decode).collect::<String>(), "é é  è ".repeat(60));
}

fn smtp_message_12_text_that_looks_encoded_shows_as_it_is() {
    let text = "=?utf-8?B?aW5qZWN0ZWQ=?=";
    let mut reader = Reader::start();
    assert_eq!(reader.read(&Sample::subject(text).message()).value("subject"), text);
    assert_eq!(reader.read(&Sample::from_name(text).message()).mailbox("from").0, text);
    assert!(!wire(&Sample::subject(text).message()).value("subject").contains(text));
    assert!(!wire(&Sample::from_name(text).message()).value("from").contains(text));
}

fn smtp_message_13_names_with_specials_are_quoted() {
    for (name, quoted) in [
        ("Doe, John; [a] (b): <c@d> .", "\"Doe, John; [a] (b): <c@d> .\""),
        ("John \"JD\" \\ Doe", "\"John \\\"JD\\\" \\\\ Doe\""),
        ("\\", "\"\\\\\""),
        ("Ada", "\"Ada\""),
    ] {
        let sample = Sample { reply_to: Some(mailbox(name, "a@b.example")), ..Sample::from_name(name) };
        let message = sample.message();
        assert_eq!(wire(&message).value("from"), format!("{quoted} <no-reply@id.example.com>"));
        let read = read(&message);
        assert_eq!(read.mailbox("from"), (name, "no-reply@id.example.com"));
        assert_eq!(read.mailbox("reply-to"), (name, "a@b.example"));
    }
    let nameless = Sample { from: Mailbox { name: None, address: address("a@b.example") }, ..Sample::default() };
    assert_eq!(wire(&nameless.message()).value("from"), "<a@b.example>");
    assert_eq!(wire(&Sample::from_name("").message()).value("from"), "<no-reply@id.example.com>");
}
