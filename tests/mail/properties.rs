//! Whatever a draft holds: an error, or a message with the headers it must have that reads back as what was given.

use std::cell::{Cell, RefCell};

use postrider::mail::{EmailAddress, Mailbox};
use proptest::option;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::reader::{Reader, with_crlf};
use crate::sample::{LINK, Sample, address};
use crate::wire::{lines, wire};

/// Pieces that have ended a header, a part or an encoded word somewhere.
const PIECES: [&str; 30] = [
    "\r",
    "\n",
    "\r\n",
    "\0",
    "\u{85}",
    "\u{2028}",
    "\r\n\r\n",
    "\r\n ",
    "\n.\n",
    "\r\n.\r\n",
    "=?utf-8?Q?",
    "?=",
    "=?",
    "=",
    "_",
    "--=_",
    " ",
    "  ",
    "\t",
    "\"",
    "\\",
    "<",
    ">",
    ",",
    ":",
    "@",
    "é",
    "👍",
    "\u{feff}",
    "=\n",
];

fn ends_a_line(character: char) -> bool {
    character.is_control() || "\u{2028}\u{2029}".contains(character)
}

/// Unicode of any kind with such pieces between.
fn hostile() -> impl Strategy<Value = String> {
    let piece = prop_oneof![4 => "\\PC{0,12}", 2 => any::<char>().prop_map(String::from), 3 => prop::sample::select(&PIECES[..]).prop_map(String::from)];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

/// Text without line breaks: what a subject may be.
fn benign() -> impl Strategy<Value = String> {
    let piece = prop_oneof![4 => "\\PC{0,40}", 1 => "[a-z]{1,200}", 3 => prop::sample::select(&PIECES[10..]).prop_map(String::from)];
    let text = prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat());
    text.prop_map(|text| text.replace(ends_a_line, ""))
}

fn samples<S: Strategy<Value = String>>(
    header: impl Fn() -> S,
    link: impl Strategy<Value = String>,
) -> impl Strategy<Value = Sample> {
    let name = || option::of(header());
    (header(), name(), option::of(name()), hostile(), hostile(), option::of(link)).prop_map(
        |(subject, from, reply_to, text, html, unsubscribe)| Sample {
            from: Mailbox { name: from, address: address("no-reply@id.example.com") },
            reply_to: reply_to.map(|name| Mailbox { name, address: address("help@bücher.example") }),
            subject,
            text,
            html,
            unsubscribe,
            ..Sample::default()
        },
    )
}

/// Checks what can be composed; says whether it could.
fn check(sample: &Sample, reader: &mut Reader) -> Result<bool, TestCaseError> {
    let Ok(message) = sample.compose() else { return Ok(false) };
    let mut expected =
        vec!["From", "To", "Subject", "Date", "Message-ID", "Auto-Submitted", "MIME-Version", "Content-Type"];
    if sample.reply_to.is_some() {
        expected.insert(1, "Reply-To");
    }
    if sample.unsubscribe.is_some() {
        expected.splice(expected.len() - 2..expected.len() - 2, ["List-Unsubscribe", "List-Unsubscribe-Post"]);
    }
    prop_assert_eq!(wire(&message).names(), expected.clone());
    prop_assert!(message.bytes().is_ascii());
    for line in lines(message.bytes()) {
        prop_assert!(line.len() <= 998 && !line.iter().any(|byte| b"\r\n\0".contains(byte)));
    }
    let read = reader.read(&message);
    let names: Vec<&str> = read.headers.iter().map(|(name, _)| name.as_str()).collect();
    prop_assert_eq!(names, expected);
    prop_assert_eq!(read.value("subject"), &sample.subject);
    prop_assert_eq!(read.text(), with_crlf(&sample.text));
    prop_assert_eq!(read.html(), with_crlf(&sample.html));
    prop_assert_eq!(read.mailbox("from"), (sample.from.name.as_deref().unwrap_or_default(), "no-reply@id.example.com"));
    prop_assert_eq!(&read.defects, &Vec::<String>::new());
    Ok(true)
}

fn runner(cases: u32) -> TestRunner {
    TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() })
}

#[test]
fn c13_any_text_in_any_field_is_refused_or_reads_back_in_place() {
    let reader = RefCell::new(Reader::start());
    let link = hostile().prop_map(|tail| format!("{LINK}{tail}"));
    runner(300).run(&samples(hostile, link), |sample| check(&sample, &mut reader.borrow_mut()).map(drop)).unwrap();
}

#[test]
fn any_text_without_line_breaks_reads_back_as_it_is() {
    let reader = RefCell::new(Reader::start());
    let link = "[A-Za-z0-9._~%&=;-]{0,300}".prop_map(|tail| format!("{LINK}{tail}"));
    runner(300)
        .run(&samples(benign, link), |sample| {
            prop_assert!(check(&sample, &mut reader.borrow_mut())?, "it can be composed");
            Ok(())
        })
        .unwrap();
}

#[test]
fn any_text_is_refused_as_an_address_or_goes_out_as_one_word() {
    let part = prop_oneof![hostile(), "[a-zé.+\"\\\\ @-]{0,30}", Just("ada".to_owned())];
    let domain =
        prop_oneof![hostile(), "[a-z0-9ü.-]{0,40}", Just("[IPv6:::1]".to_owned()), Just("b.example".to_owned())];
    let taken = Cell::new(0);
    runner(4_000)
        .run(&(part, domain), |(local_part, domain)| {
            let Ok(address) = EmailAddress::parse(&format!("{local_part}@{domain}")) else { return Ok(()) };
            let sent = address.to_string();
            prop_assert!(!sent.contains(ends_a_line) && !sent.contains(['<', '>']));
            prop_assert!(address.domain().is_ascii() && !address.domain().contains([' ', '@', ',', '"']));
            prop_assert!(address.local_part().len() <= 64 && address.domain().len() <= 255 && sent.len() <= 254);
            prop_assert_eq!(EmailAddress::parse(&sent), Ok(address));
            taken.set(taken.get() + 1);
            Ok(())
        })
        .unwrap();
    assert!(taken.get() > 250, "{}", taken.get());
}
