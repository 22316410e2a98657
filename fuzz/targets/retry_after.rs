//! Retry-After headers: bounded whatever they say and whenever it is, and digits mean seconds.
#![no_main]

use std::time::Duration;

use chrono::DateTime;
use libfuzzer_sys::fuzz_target;
use postrider::outbound::{MAX_RETRY_AFTER, retry_after};

fuzz_target!(|input: (i64, &[u8])| {
    let (seconds, text) = input;
    let Some(now) = DateTime::from_timestamp(seconds, 0) else { return };
    let lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').collect();
    let wait = retry_after(lines.iter().copied(), now);
    assert!(wait.is_none_or(|wait| wait <= MAX_RETRY_AFTER));
    let longest = lines.iter().filter_map(|line| retry_after([*line], now)).max();
    assert_eq!(wait, longest, "of several lines the longest");
    if let [line] = lines[..]
        && (1..=9).contains(&line.len())
        && line.iter().all(u8::is_ascii_digit)
    {
        let digits = std::str::from_utf8(line).expect("digits").parse().expect("nine of them");
        assert_eq!(wait, Some(Duration::from_secs(digits)));
    }
});
