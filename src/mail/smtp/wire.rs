//! The last look at a message before it goes out: whatever built it, nothing in it may be read as a command.

use postrider_actors::Reason;

use crate::mail::{EmailAddress, Message};

/// Octets of a line at most, without its end (RFC 5322 2.1.1).
const MAX_LINE: usize = 998;

/// Octets of an envelope's address at most (RFC 5321 4.5.3.1.3, less the angle brackets).
const MAX_ADDRESS: usize = 254;

/// Checks envelope and bytes.
///
/// [`Reason::InvalidAddress`] and [`Reason::InvalidMessage`] are final: the same message is no better tomorrow.
pub(super) fn check(message: &Message) -> Result<(), Reason> {
    let envelope = [message.from(), message.to()];
    if !envelope.into_iter().all(|address| is_path(&written(address))) {
        return Err(Reason::InvalidAddress);
    }
    if is_mail(message.bytes()) { Ok(()) } else { Err(Reason::InvalidMessage) }
}

/// An address as it stands between the angle brackets of MAIL and RCPT.
pub(super) fn written(address: &EmailAddress) -> String {
    format!("{}@{}", address.local_part(), address.domain())
}

/// Whether an address stays within its angle brackets: no control character, and white space, brackets and quotation
/// marks only as a quoted string has them (RFC 5321 4.1.2).
fn is_path(address: &str) -> bool {
    let Some((local_part, domain)) = address.rsplit_once('@') else { return false };
    let quoted = local_part.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    let local_part_fits = match quoted {
        Some(text) => is_quoted_text(text),
        None => !local_part.is_empty() && !local_part.chars().any(is_delimiter),
    };
    let ends = |c: char| is_delimiter(c) && c != '[' && c != ']' && c != ':';
    let clean = !address.chars().any(char::is_control);
    clean && local_part_fits && !domain.is_empty() && !domain.chars().any(ends) && address.len() <= MAX_ADDRESS
}

fn is_delimiter(c: char) -> bool {
    c.is_whitespace() || "()<>[]:;@\\,\"".contains(c)
}

/// Between quotation marks: each further one, and each backslash, has a backslash before it.
fn is_quoted_text(text: &str) -> bool {
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        if c == '"' || (c == '\\' && rest.next().is_none()) {
            return false;
        }
    }
    true
}

/// Whether bytes can go out after DATA (RFC 5322 2.1.1, 2.3): CR and LF together alone, no NUL, no line over 998
/// octets, and a first line that is no dot.
fn is_mail(bytes: &[u8]) -> bool {
    let lines_fit =
        bytes.split(|byte| *byte == b'\n').all(|line| line.strip_suffix(b"\r").unwrap_or(line).len() <= MAX_LINE);
    let pairs = bytes.iter().zip(bytes.iter().skip(1));
    let paired = pairs.clone().all(|(first, second)| (*first == b'\r') == (*second == b'\n'));
    let ends_paired = bytes.first() != Some(&b'\n') && bytes.last() != Some(&b'\r');
    paired && ends_paired && lines_fit && !bytes.contains(&0) && !bytes.is_empty() && !bytes.starts_with(b".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c13_an_address_that_leaves_its_brackets_is_refused() {
        for good in [
            "a@b.example",
            "\"a b\"@b.example",
            "\"a>b\"@b.example",
            "\"a\\\"b\"@b.example",
            "jos\u{e9}@b.example",
            "user@[IPv6:2001:db8::1]",
            "user@[192.0.2.1]",
            "o'neil+x@b.example",
        ] {
            assert!(is_path(good), "{good}");
        }
        let long = format!("{}@b.example", "a".repeat(250));
        for bad in [
            "",
            "a",
            "@b.example",
            "a@",
            "v@e.x>\r\nRCPT TO:<w@e.x",
            "v@e.x>",
            "<v@e.x",
            "a b@e.x",
            "a@e x",
            "a@b@e.x",
            "a\0@e.x",
            "a\u{85}@e.x",
            "a\u{2028}b@e.x",
            "\"a\"b\"@e.x",
            "\"a\\\"@e.x",
            "\"a\r\nb\"@e.x",
            "\"@e.x",
            &long,
        ] {
            assert!(!is_path(bad), "{bad:?}");
        }
    }

    #[test]
    fn smtp_message_35_bytes_with_a_bare_cr_or_lf_never_go_out() {
        for good in [&b"A: b\r\n\r\nx\r\n"[..], b"A: b\r\n\r\n.\r\n", b"A: b\r\n\r\nx"] {
            assert!(is_mail(good), "{good:?}");
        }
        for bad in [
            &b""[..],
            b"A: b\n",
            b"\n",
            b"A: b\r\n\n.\nMAIL",
            b"A: b\r\n\r.\r\n",
            b"A: b\r\n.\r",
            b"A\r\r\n",
            b"A\r\n\n",
            b"A\0",
            b".\r\n",
        ] {
            assert!(!is_mail(bad), "{bad:?}");
        }
        assert!(is_mail(&[b"x".repeat(998), b"\r\n".to_vec()].concat()));
        assert!(!is_mail(&[b"x".repeat(999), b"\r\n".to_vec()].concat()));
    }
}
