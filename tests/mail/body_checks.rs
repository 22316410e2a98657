//! The checks of `tests/data/smtp_message.md` that concern the body.

use std::collections::HashSet;

use crate::corpus::corpus;
use crate::numbers::checks;
use crate::reader::{Reader, read, with_crlf};
use crate::sample::{DELIVERY, Sample};
use crate::wire::{lines, wire};

checks! { BODY:
    14 smtp_message_14_mime_version_once_and_utf_8_everywhere,
    15 smtp_message_15_bodies_in_7_bits_and_lines_of_76,
    16 smtp_message_16_the_boundary_is_in_no_part_and_text_comes_first,
}

fn smtp_message_14_mime_version_once_and_utf_8_everywhere() {
    let mut reader = Reader::start();
    for message in corpus() {
        assert_eq!(wire(&message).value("mime-version"), "1.0");
        let read = reader.read(&message);
        assert_eq!(read.parts.len(), 2);
        for part in read.parts {
            assert_eq!(part.charset.as_deref(), Some("utf-8"));
            assert_eq!(part.headers, ["Content-Type", "Content-Transfer-Encoding"]);
        }
    }
}

fn smtp_message_15_bodies_in_7_bits_and_lines_of_76() {
    let mut reader = Reader::start();
    let texts = [
        "",
        "\n",
        "\n\n",
        "plain",
        "trailing \nspace\t\n",
        "=3D =\n=",
        ".\n..\nFrom a",
        "é",
        "\0",
        "\u{1}\u{7f}",
        "a\rb\r\nc\nd",
        "\u{feff}bom",
    ];
    let long =
        ["x".repeat(5_000), "é".repeat(5_000), format!("{}\n", "y".repeat(76)), "z".repeat(77), "名 ".repeat(500)];
    let mut encodings = HashSet::new();
    for text in texts.into_iter().chain(long.iter().map(String::as_str)) {
        let sample = Sample { text: text.into(), html: format!("<p>{text}</p>"), ..Sample::default() };
        let message = sample.message();
        assert!(message.bytes().is_ascii());
        assert!(lines(wire(&message).body).iter().all(|line| line.len() <= 76));
        let read = reader.read(&message);
        assert_eq!(read.text(), with_crlf(&sample.text), "{text:?}");
        assert_eq!(read.html(), with_crlf(&sample.html), "{text:?}");
        assert_eq!(read.defects, <[String; 0]>::default());
        encodings.extend(read.parts.into_iter().map(|part| part.encoding));
    }
    assert_eq!(encodings, ["quoted-printable".to_owned(), "base64".to_owned()].into());
}

fn smtp_message_16_the_boundary_is_in_no_part_and_text_comes_first() {
    let boundary = format!("=_{DELIVERY}");
    // Bodies that try to end their part: as plain ASCII, and in each of the encodings.
    for filler in ["", "é", &"é".repeat(500)] {
        let text = format!("{filler}\r\n--{boundary}\r\nContent-Type: text/html\r\n\r\nforged\r\n--{boundary}--\r\n");
        let sample = Sample { text: text.clone(), html: text.clone(), ..Sample::default() };
        let message = sample.message();
        let wire = wire(&message);
        assert!(wire.value("content-type").contains(&format!("boundary=\"{boundary}\"")));
        let markers: Vec<&[u8]> = lines(wire.body)
            .into_iter()
            .filter(|line| line.windows(boundary.len()).any(|window| window == boundary.as_bytes()))
            .collect();
        let (open, close) = (format!("--{boundary}"), format!("--{boundary}--"));
        assert_eq!(markers, [open.as_bytes(), open.as_bytes(), close.as_bytes()]);
        assert!(message.bytes().ends_with(format!("\r\n{close}\r\n").as_bytes()));
        let read = read(&message);
        assert_eq!(read.content_type, "multipart/alternative");
        let types: Vec<&str> = read.parts.iter().map(|part| part.content_type.as_str()).collect();
        assert_eq!(types, ["text/plain", "text/html"]);
        assert_eq!((read.text(), read.html()), (text.as_str(), text.as_str()));
    }
}
