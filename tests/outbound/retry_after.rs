//! Retry-After, apart from the wire.

use std::time::Duration;

use chrono::{DateTime, TimeZone, Utc};
use postrider::outbound::{MAX_RETRY_AFTER, retry_after};
use proptest::prelude::*;

use crate::support::now_of_vectors;

fn seconds(lines: &[&str], now: DateTime<Utc>) -> Option<u64> {
    retry_after(lines.iter().map(|line| line.as_bytes()), now).map(|wait| wait.as_secs())
}

fn at_vectors(line: &str) -> Option<u64> {
    seconds(&[line], now_of_vectors())
}

#[test]
fn the_three_date_forms_name_the_same_instant() {
    for date in ["Thu, 01 Jan 2026 00:10:00 GMT", "Thursday, 01-Jan-26 00:10:00 GMT", "Thu Jan  1 00:10:00 2026"] {
        assert_eq!(at_vectors(date), Some(600), "{date}");
    }
    assert_eq!(at_vectors("Sun Feb 15 00:00:00 2026"), Some(45 * 86400));
    assert_eq!(at_vectors(" \t60\t "), Some(60), "surrounding white space is not part of the value");
}

#[test]
fn a_date_that_has_passed_is_no_wait_and_a_leap_second_is_a_second() {
    assert_eq!(at_vectors("Wed, 31 Dec 2025 23:59:59 GMT"), Some(0));
    assert_eq!(at_vectors("Thu, 01 Jan 2026 00:10:60 GMT"), Some(660));
    assert_eq!(at_vectors("Thu, 01 Jan 2026 00:10:61 GMT"), None);
}

#[test]
fn a_two_digit_year_is_the_latest_that_is_not_over_fifty_years_ahead() {
    let year = |now: i32, text: &str| {
        let now = Utc.with_ymd_and_hms(now, 1, 1, 0, 0, 0).unwrap();
        seconds(&[text], now).map(|wait| wait / 31_556_952)
    };
    assert_eq!(year(2026, "Wednesday, 01-Jan-70 00:00:00 GMT"), Some(44), "2070");
    assert_eq!(year(2026, "Wednesday, 01-Jan-76 00:00:00 GMT"), Some(49), "exactly 50 years ahead is not over");
    assert_eq!(year(2026, "Wednesday, 01-Jan-76 00:00:01 GMT"), Some(0), "1976");
    assert_eq!(year(2026, "Friday, 01-Jan-99 00:00:00 GMT"), Some(0), "1999");
    assert_eq!(year(2090, "Friday, 02-Jan-05 00:00:00 GMT"), Some(15), "2105");
}

#[test]
fn a_number_too_large_is_a_long_wait_that_can_still_be_added_to_a_time() {
    for huge in ["4294967296", "18446744073709551616", &"9".repeat(5000), "Fri, 31 Dec 9999 23:59:59 GMT"] {
        assert_eq!(retry_after([huge.as_bytes()], now_of_vectors()), Some(MAX_RETRY_AFTER), "{huge}");
    }
    assert!(MAX_RETRY_AFTER > Duration::from_secs(100 * 365 * 86400));
    assert!(now_of_vectors().checked_add_signed(chrono::TimeDelta::from_std(MAX_RETRY_AFTER).unwrap()).is_some());
}

#[test]
fn of_several_lines_the_latest_that_can_be_read_counts() {
    let now = now_of_vectors();
    assert_eq!(seconds(&["60", "120"], now), Some(120));
    assert_eq!(seconds(&["120", "junk", "Thu, 01 Jan 2026 00:01:00 GMT"], now), Some(120));
    assert_eq!(seconds(&["junk", ""], now), None);
    assert_eq!(seconds(&[], now), None);
}

#[test]
fn a_date_that_no_calendar_has_is_passed_over() {
    for date in [
        "Thu, 30 Feb 2026 00:10:00 GMT",
        "Thu, 01 Jan 2026 24:00:00 GMT",
        "Thu, 01 Jan 2026 00:60:00 GMT",
        "Thu, 01 Jan 2026 00:10:00 +0000",
        "Thu, +1 Jan 2026 00:10:00 GMT",
        "Thu,  01 Jan 2026 00:10:00 GMT",
        "Xxx, 01 Jan 2026 00:10:00 GMT",
        "Thursday, 01-Jan-2026 00:10:00 GMT",
        "Thu Jan 1 00:10:00 2026",
        "\u{ff11}",
    ] {
        assert_eq!(at_vectors(date), None, "{date}");
    }
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(lines in prop::collection::vec(any::<Vec<u8>>(), 0..4), now in 0i64..250_000_000_000) {
        let now = DateTime::from_timestamp(now, 0).unwrap();
        let wait = retry_after(lines.iter().map(Vec::as_slice), now);
        prop_assert!(wait.is_none_or(|wait| wait <= MAX_RETRY_AFTER));
    }

    #[test]
    fn nothing_that_looks_like_a_date_makes_the_parser_panic(
        text in "[MTWFS][a-z]{2,8},? [0-9A-Za-z ]{2,3}[ -][A-Z][a-z]{2}[ -][0-9]{2,4} [0-9]{2}:[0-9]{2}:[0-9]{2}( GMT)?"
    ) {
        let _ = retry_after([text.as_bytes()], now_of_vectors());
    }

    #[test]
    fn every_instant_is_read_back_from_all_its_forms(ahead in 0i64..(49 * 365 * 86400)) {
        let date = now_of_vectors() + chrono::TimeDelta::seconds(ahead);
        for form in ["%a, %d %b %Y %H:%M:%S GMT", "%A, %d-%b-%y %H:%M:%S GMT", "%a %b %e %H:%M:%S %Y"] {
            let text = date.format(form).to_string();
            prop_assert_eq!(at_vectors(&text), Some(ahead as u64), "{}", text);
        }
    }
}
