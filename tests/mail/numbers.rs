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

use std::path::PathBuf;

use crate::body_checks::BODY;
use crate::header_checks::HEADER;
use crate::recipient_checks::RECIPIENT;
use crate::text_checks::TEXT;
use crate::unsubscribe_checks::UNSUBSCRIBE;

/// A number, the file of these tests that it is checked in, and the check there.
type Elsewhere = (u8, &'static str, &'static str);

/// Numbers of `smtp_message.md` that are checked elsewhere.
const SMTP_ELSEWHERE: &[Elsewhere] = &[
    (17, "content/escaping.rs", "hostile_names_and_texts_are_shown_as_they_are"),
    (25, "smtp/session.rs", "smtp_message_25_the_client_names_itself_and_again_under_tls"),
    (26, "smtp/session.rs", "smtp_message_26_what_was_learnt_in_clear_is_forgotten"),
    (27, "smtp/session.rs", "smtp_message_27_without_tls_there_is_no_login_and_no_mail"),
    (28, "smtp/session.rs", "smtp_message_28_the_certificate_is_of_the_relays_name_which_is_the_sni"),
    (29, "smtp/session.rs", "smtp_message_29_a_login_goes_by_an_offered_mechanism_only"),
    (30, "smtp/session.rs", "smtp_message_30_31_commands_come_in_order_one_by_one_and_are_short"),
    (31, "smtp/session.rs", "smtp_message_30_31_commands_come_in_order_one_by_one_and_are_short"),
    (33, "smtp/session.rs", "smtp_message_33_the_body_waits_for_354"),
    (34, "smtp/session.rs", "smtp_message_34_dots_are_doubled_and_the_end_comes_once"),
    (35, "smtp/session.rs", "smtp_message_35_no_lone_cr_or_lf_is_ever_sent"),
    (36, "smtp/outcomes.rs", "every_row_of_smtp_replies_comes_to_what_it_says"),
    (37, "smtp/outcomes.rs", "every_row_of_smtp_replies_comes_to_what_it_says"),
    (38, "smtp/session.rs", "smtp_message_38_a_connection_that_has_done_its_share_is_ended_by_quit"),
    (39, "smtp/session.rs", "smtp_message_39_each_step_has_its_time_and_all_have_one_together"),
    (40, "smtp/session.rs", "smtp_message_40_a_parameter_is_used_only_where_it_is_offered"),
    (41, "smtp/connections.rs", "smtp_message_41_a_connection_carries_one_transaction_at_a_time"),
    (42, "smtp/secrecy.rs", "smtp_message_42_only_codes_and_kinds_are_logged_and_recorded"),
];

/// Numbers of `unsubscribe.md` that are checked elsewhere.
const UNSUBSCRIBE_ELSEWHERE: &[Elsewhere] = &[
    (7, "identity/unsubscribe_tokens.rs", "any_changed_character_makes_it_none"),
    (8, "identity/unsubscribe_tokens.rs", "it_shows_no_id"),
    (9, "mail/dkim.rs", "unsubscribe_09_a_signature_covers_both_fields_and_lists_them"),
    (12, "email/unsubscribe.rs", "a_wrong_token_changes_nothing_and_is_answered_as_a_right_one"),
    (13, "email/unsubscribe.rs", "a_token_of_an_older_key_is_good_while_the_key_is_there"),
    (14, "email/unsubscribe.rs", "a_post_unsubscribes_the_one_recipient_and_again_the_same"),
    (15, "email/unsubscribe.rs", "a_multipart_body_is_taken_too"),
    (16, "email/unsubscribe.rs", "c22_a_get_changes_nothing_and_shows_a_form_that_posts"),
    (17, "email/unsubscribe.rs", "c22_a_get_changes_nothing_and_shows_a_form_that_posts"),
    (18, "email/unsubscribe.rs", "a_post_unsubscribes_the_one_recipient_and_again_the_same"),
    (19, "email/unsubscribe.rs", "a_wrong_token_changes_nothing_and_is_answered_as_a_right_one"),
    (20, "email/unsubscribe.rs", "a_post_unsubscribes_the_one_recipient_and_again_the_same"),
    (21, "email/unsubscribe.rs", "a_post_that_does_not_say_one_click_changes_nothing_and_gets_400"),
    (22, "identity/announcements.rs", "an_announcement_has_a_mail_only_while_its_recipient_can_and_wants_to_have_it"),
    (23, "email/unsubscribe.rs", "a_post_unsubscribes_the_one_recipient_and_again_the_same"),
];

fn numbers(list: &str) -> Vec<u8> {
    list.lines().filter_map(|line| line.split_once(". ")?.0.parse().ok()).collect()
}

#[track_caller]
fn assert_all_are_checked(list: &str, here: &[u8], elsewhere: &[Elsewhere]) {
    let mut checked: Vec<u8> = here.iter().copied().chain(elsewhere.iter().map(|(number, ..)| *number)).collect();
    checked.sort_unstable();
    assert_eq!(checked, numbers(list), "each number is checked in one place");
    for (number, file, check) in elsewhere {
        let path: PathBuf = [env!("CARGO_MANIFEST_DIR"), "tests", file].iter().collect();
        let tests = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{number}: {file}: {error}"));
        assert!(tests.contains(&format!("fn {check}()")), "{number}: {file} has no {check}");
    }
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
