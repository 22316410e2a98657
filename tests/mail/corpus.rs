//! Messages to look at for what holds of every one.

use postrider::mail::Message;

use crate::sample::{LINK, Sample, address};

/// Messages that differ in every way that could matter.
pub fn corpus() -> Vec<Message> {
    let long_word = "w".repeat(2_000);
    let long_text = "lorem ipsum dolor sit amet ".repeat(80);
    let mut samples = vec![
        Sample::subject(&"p".repeat(300)),
        Sample::default(),
        Sample::rich(),
        Sample::with_link(LINK),
        Sample::subject(""),
    ];
    samples.extend(
        [long_word.as_str(), long_text.trim_end(), &"é".repeat(1_000), " a  b ", "a\u{2003}b"].map(Sample::subject),
    );
    samples.extend(
        ["", "Ada", "Ünïcode", "\"", &"n".repeat(300), &"名".repeat(300), "a, b", "=?x?="].map(Sample::from_name),
    );
    samples.extend(["", "\r\n", "a\rb\nc\0", ".\r\n.\n..\r", &long_word, "é", "a \nb\t\n"].map(|text| Sample {
        text: text.into(),
        html: text.into(),
        ..Sample::default()
    }));
    samples.push(Sample { to: address("josé@bücher.example"), ..Sample::default() });
    samples.push(Sample { to: address(&format!("{}@{}.example", "l".repeat(64), "d".repeat(63))), ..Sample::rich() });
    samples.iter().map(Sample::message).collect()
}
