//! Cases met in the field, each under its number.

use std::collections::HashSet;
use std::env;
use std::process::Command;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use postrider::mail::{ComposeError, EmailAddress, Message};

use crate::corpus::corpus;
use crate::reader::{Reader, read, with_crlf};
use crate::sample::{Sample, address, mailbox};
use crate::wire::{lines, wire};

/// Values nobody thinks of as a user's.
#[test]
fn c13_no_value_adds_a_header_or_a_command() {
    let refused = [
        Sample::with_link("https://e.x/u\r\nBcc: v@e.x").compose(),
        Sample::from_name("A\r\nX: 1").compose(),
        Sample { reply_to: Some(mailbox("A\nX: 1", "a@b.example")), ..Sample::default() }.compose(),
        Sample::subject("A\r\n\r\n<p>").compose(),
    ];
    assert!(refused.iter().all(Result::is_err), "{refused:?}");
    for wrong in ["v@e.x>\r\nRCPT TO:<w@e.x", "v@e.x\r", "v@e\r.x"] {
        assert!(EmailAddress::parse(wrong).is_err(), "{wrong:?}");
    }
}

#[test]
fn c20_an_address_stands_in_the_message_as_in_the_envelope() {
    let cases = [
        ("josé@example.com", "josé@example.com", true),
        ("x@bücher.example", "x@xn--bcher-kva.example", false),
        ("\"a b\"@example.com", "\"a b\"@example.com", false),
        ("user@[IPv6:2001:db8::1]", "user@[IPv6:2001:db8::1]", false),
    ];
    for (given, sent, needs_smtputf8) in cases {
        let message = Sample { to: address(given), ..Sample::rich() }.message();
        assert_eq!(message.to().to_string(), sent);
        assert_eq!(message.needs_smtputf8(), needs_smtputf8, "{given}");
        assert_eq!(wire(&message).value("to"), format!("<{sent}>"), "never an encoded word");
        assert_eq!(read(&message).mailbox("to"), ("", sent));
    }
}

#[test]
fn c21_long_lines_are_encoded_and_folded_or_refused() {
    let html = format!("<p>{}</p>", "https://e.x/".repeat(416));
    assert!(html.len() > 4_990 && !html.contains('\n'));
    let words = "lorem ".repeat(333);
    for subject in [words.trim_end().to_owned(), "s".repeat(2_000), "é".repeat(1_000)] {
        let sample = Sample { subject, html: html.clone(), text: "ü".repeat(5_000), ..Sample::rich() };
        let message = sample.message();
        assert!(message.bytes().is_ascii(), "8BITMIME is not needed");
        assert!(lines(message.bytes()).iter().all(|line| line.len() <= 78));
        let read = read(&message);
        assert_eq!(read.value("subject"), sample.subject);
        assert_eq!((read.text(), read.html()), (sample.text.as_str(), sample.html.as_str()));
    }
    let link = Sample::with_link(&format!("https://e.x/{}", "u".repeat(1_488)));
    assert_eq!(link.compose(), Err(ComposeError::LineTooLong));
}

#[test]
fn c22_one_click_headers_are_whole_or_absent_and_each_recipients_own() {
    let refused = [
        "http://e.x/u",
        "mailto:u@e.x",
        "https://e.x/a b",
        "https://e.x/>",
        "https://e.x/a,b",
        "https://e.x/a>,<https://e.x/b",
    ];
    for link in refused {
        assert_eq!(Sample::with_link(link).compose(), Err(ComposeError::UnsubscribeUri), "{link}");
    }
    for message in corpus() {
        let wire = wire(&message);
        let both = ["list-unsubscribe", "list-unsubscribe-post"].map(|name| wire.values(name).len());
        assert!(both == [0, 0] || both == [1, 1], "{both:?}");
    }
    let recipients = ["ada", "grace", "mary"];
    let messages = recipients.map(|name| {
        let link = Some(format!("https://id.example.com/u?t=token-of-{name}"));
        Sample { to: address(&format!("{name}@example.org")), unsubscribe: link, ..Sample::default() }.message()
    });
    for (name, message) in recipients.iter().zip(&messages) {
        let link = format!("<https://id.example.com/u?t=token-of-{name}>");
        assert_eq!(wire(message).value("list-unsubscribe"), link);
        assert_eq!(wire(message).value("list-unsubscribe-post"), "List-Unsubscribe=One-Click");
        let text = String::from_utf8(message.bytes().to_vec()).unwrap();
        assert_eq!(text.matches("token-of-").count(), 1, "nobody else's");
    }
    assert!(!wire(&Sample::default().message()).names().contains(&"List-Unsubscribe"), "never on a transactional one");
}

/// Set in the process that the test below starts: it prints what it composes.
const OTHER_PROCESS: &str = "POSTRIDER_TEST_COMPOSE";

#[test]
fn c26_another_attempt_by_another_process_sends_the_same_bytes() {
    let in_base64 = || corpus().iter().map(|message| STANDARD.encode(message.bytes())).collect::<Vec<_>>();
    if env::var_os(OTHER_PROCESS).is_some() {
        in_base64().iter().for_each(|message| println!("message {message}"));
        return;
    }
    let name = "cases::c26_another_attempt_by_another_process_sends_the_same_bytes";
    let mut command = Command::new(env::current_exe().unwrap());
    command
        .args(["--exact", name, "--nocapture"])
        .env(OTHER_PROCESS, "1")
        .env("TZ", "Asia/Tokyo")
        .env("LC_ALL", "ja_JP.UTF-8");
    let output = String::from_utf8(command.output().unwrap().stdout).unwrap();
    let theirs: Vec<&str> =
        output.lines().filter_map(|line| line.split_once("message ")).map(|(_, text)| text).collect();
    assert!(theirs.len() > 20, "{output}");
    assert_eq!(theirs, in_base64());
    assert_eq!(theirs, in_base64(), "and a second time");
}

#[test]
fn c26_identity_is_that_of_the_delivery() {
    let identity = |message: &Message| {
        let wire = wire(message);
        (wire.value("message-id"), wire.value("date"), wire.value("from"))
    };
    // Each recipient's message is a delivery of its own.
    let ids: HashSet<String> = ["0190b5a4-8c7e-7c3a-9d52-3f1e6a7b8c9d", "0190b5a4-8c7e-7c3a-9d52-3f1e6a7b8c9e"]
        .map(|id| identity(&Sample { delivery: id.parse().unwrap(), ..Sample::default() }.message()).0)
        .into();
    assert_eq!(ids.len(), 2);
    for id in ids {
        assert!(id.starts_with('<') && id.ends_with("@id.example.com>"), "{id}");
    }
}

/// Line ends of every kind are one in the message.
#[test]
fn line_ends_of_every_kind_read_back_as_one() {
    let mut reader = Reader::start();
    for text in ["a\nb", "a\r\nb", "a\rb"] {
        let read = reader.read(&Sample { text: text.into(), ..Sample::default() }.message());
        assert_eq!(read.text(), "a\r\nb");
        assert_eq!(read.text(), with_crlf(text));
    }
}

#[test]
fn neither_draft_nor_message_nor_error_shows_what_is_in_it() {
    let sample = Sample { to: address("ada@example.org"), text: "token=secret".into(), ..Sample::rich() };
    let wrong = Sample { subject: "secret\r\n".into(), ..sample.clone() };
    let error = wrong.compose().unwrap_err();
    for shown in [format!("{:?}", sample.draft()), format!("{:?}", sample.message()), format!("{error:?} {error}")] {
        let leaks = ["secret", "example", "ada", "Zürich", "Bestätigen"].into_iter().find(|leak| shown.contains(leak));
        assert_eq!(leaks, None, "{shown}");
    }
}
