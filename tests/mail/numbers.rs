//! Each number of the two lists in `tests/data` has a check, here or elsewhere.

/// Makes a test of each check, and a list of their numbers.
macro_rules! checks {
    ($list:ident: $($number:literal $check:ident,)*) => {
        pub const $list: &[u8] = &[$($number),*];
        mod numbered {
            $(#[test] fn $check() { super::$check(); })*
        }
    };
}
pub(crate) use checks;

use crate::body_checks::BODY;
use crate::header_checks::HEADER;
use crate::recipient_checks::RECIPIENT;
use crate::text_checks::TEXT;
use crate::unsubscribe_checks::UNSUBSCRIBE;

/// Numbers of `smtp_message.md` that are checked elsewhere.
const SMTP_ELSEWHERE: &[(std::ops::RangeInclusive<u8>, &str)] = &[
    (17..=17, "the templates of the email and announcement channels, which escape what they fill in"),
    (25..=31, "the tests of the session with a relay"),
    (33..=42, "the tests of the session with a relay"),
];

/// Numbers of `unsubscribe.md` that are checked elsewhere.
const UNSUBSCRIBE_ELSEWHERE: &[(std::ops::RangeInclusive<u8>, &str)] = &[
    (7..=8, "the announcement channel, where the link's token is made"),
    (9..=9, "dkim.rs: unsubscribe_09_a_signature_covers_both_fields_and_lists_them"),
    (12..=13, "the announcement channel, where the link's token is made and read"),
    (14..=23, "the unsubscribe endpoint"),
];

fn numbers(list: &str) -> Vec<u8> {
    list.lines().filter_map(|line| line.split_once(". ")?.0.parse().ok()).collect()
}

#[track_caller]
fn assert_all_are_checked(list: &str, here: &[u8], elsewhere: &[(std::ops::RangeInclusive<u8>, &str)]) {
    let elsewhere = elsewhere.iter().flat_map(|(numbers, _)| numbers.clone());
    let mut checked: Vec<u8> = here.iter().copied().chain(elsewhere).collect();
    checked.sort_unstable();
    assert_eq!(checked, numbers(list), "each number is checked in one place");
}

#[test]
fn every_number_of_smtp_message_md_has_its_check() {
    assert_all_are_checked(
        include_str!("../data/smtp_message.md"),
        &[HEADER, TEXT, BODY, RECIPIENT].concat(),
        SMTP_ELSEWHERE,
    );
}

#[test]
fn every_number_of_unsubscribe_md_has_its_check() {
    assert_all_are_checked(include_str!("../data/unsubscribe.md"), UNSUBSCRIBE, UNSUBSCRIBE_ELSEWHERE);
}
