//! The numbered checks of `tests/data/unsubscribe.md` that concern the message.

use postrider::mail::ComposeError;

use crate::numbers::checks;
use crate::reader::read;
use crate::sample::{LINK, Sample};
use crate::wire::wire;

checks! { UNSUBSCRIBE:
    1 unsubscribe_01_both_fields_once,
    2 unsubscribe_02_one_https_uri,
    3 unsubscribe_03_the_post_field_to_the_letter,
    4 unsubscribe_04_in_angle_brackets_without_spaces,
    5 unsubscribe_05_no_comment_and_no_second_uri,
    6 unsubscribe_06_the_uri_goes_out_as_it_is,
    10 unsubscribe_10_a_line_of_998_octets_and_never_folded,
    11 unsubscribe_11_neither_field_without_a_link,
}

fn unsubscribe_01_both_fields_once() {
    let message = Sample { unsubscribe: Some(LINK.into()), ..Sample::rich() }.message();
    for name in ["list-unsubscribe", "list-unsubscribe-post"] {
        assert_eq!(wire(&message).values(name).len(), 1);
        assert!(!read(&message).value(name).is_empty());
    }
}

fn unsubscribe_02_one_https_uri() {
    for taken in
        [LINK, "https://e.x", "HTTPS://e.x/u", "https://[2001:db8::1]:8443/u?a=(b)*'!$&;@:~#f", "https://e.x/%2C%3E"]
    {
        assert!(Sample::with_link(taken).compose().is_ok(), "{taken}");
    }
    for refused in [
        "",
        "http://e.x/u",
        "mailto:u@e.x",
        "mailto:u@e.x, https://e.x/u",
        "ftp://e.x",
        "e.x/u",
        "//e.x/u",
        "https:",
        "https:/e.x/u",
        "https://",
        "https:///e.x/u",
        "https://?a",
        "https://:443/",
        "https://e.x:99999/",
        "https://u@e.x/",
        "https://u:p@e.x/",
        "https://e..x\u{e9}/",
        "https://bücher.example/",
        "xhttps://e.x/",
        "\u{20ac}https://e.x",
    ] {
        assert_eq!(Sample::with_link(refused).compose(), Err(ComposeError::UnsubscribeUri), "{refused}");
    }
}

fn unsubscribe_03_the_post_field_to_the_letter() {
    let message = Sample::with_link(LINK).message();
    assert_eq!(wire(&message).value("list-unsubscribe-post"), "List-Unsubscribe=One-Click");
}

fn unsubscribe_04_in_angle_brackets_without_spaces() {
    assert_eq!(wire(&Sample::with_link(LINK).message()).value("list-unsubscribe"), format!("<{LINK}>"));
    for refused in [
        "https://e.x/a b",
        " https://e.x/",
        "https://e.x/ ",
        "https://e.x/\t",
        "https://e.x/>",
        "<https://e.x/>",
        "https://e.x/<",
    ] {
        assert_eq!(Sample::with_link(refused).compose(), Err(ComposeError::UnsubscribeUri), "{refused:?}");
    }
}

fn unsubscribe_05_no_comment_and_no_second_uri() {
    for refused in [
        "https://e.x/a,https://e.x/b",
        "https://e.x/a, https://e.x/b",
        "https://e.x/a>, <https://e.x/b",
        "https://e.x/a,b",
        "https://e.x/\"a\"",
        "https://e.x/\\",
        "https://e.x/{a}",
        "https://e.x/a|b",
        "https://e.x/^",
        "https://e.x/`",
    ] {
        assert_eq!(Sample::with_link(refused).compose(), Err(ComposeError::UnsubscribeUri), "{refused:?}");
    }
}

fn unsubscribe_06_the_uri_goes_out_as_it_is() {
    // Not as a URL parser would write it anew: a changed character changes the token.
    for link in ["https://E.x:443/a/../b/%7e?T=%aF", "https://e.x?t=~"] {
        assert_eq!(wire(&Sample::with_link(link).message()).value("list-unsubscribe"), format!("<{link}>"));
    }
}

fn unsubscribe_10_a_line_of_998_octets_and_never_folded() {
    let of_line = |length: usize| {
        Sample::with_link(&format!("https://e.x/{}", "t".repeat(length - "List-Unsubscribe: <https://e.x/>".len())))
    };
    let longest = of_line(998);
    let message = longest.message();
    let line = format!("List-Unsubscribe: <{}>", longest.unsubscribe.unwrap());
    assert!(wire(&message).header_lines().contains(&line.as_str()));
    assert_eq!(line.len(), 998);
    assert_eq!(of_line(999).compose(), Err(ComposeError::LineTooLong));
}

fn unsubscribe_11_neither_field_without_a_link() {
    let message = Sample::default().message();
    assert!(!wire(&message).names().iter().any(|name| name.to_lowercase().starts_with("list-")));
}
