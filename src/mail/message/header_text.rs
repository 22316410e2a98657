//! Text for people in a header: a subject, a name.
//!
//! What is plain ASCII stands as it is; all else as encoded words (RFC 2047). Lines are folded only before white space
//! (RFC 5322 2.2.3), and nothing that reads back differs from what was given.

use encodify::Fold;
use encodify::rfc2047::{B, Q_PHRASE, Q_TEXT, WordEncoder};

use super::ComposeError;
use crate::mail::breaks_a_line;

/// Lines are folded to stay within this (RFC 5322 2.1.1; RFC 2047 2 where they hold encoded words).
const WIDTH: usize = 76;
/// No word is longer in a text that is not encoded, so that every line can be folded.
const MAX_PLAIN_WORD: usize = 60;
const FOLD: &str = "\r\n ";

/// The value of a `Subject`.
pub(super) fn unstructured(text: &str, name: &str) -> Result<String, ComposeError> {
    check_header_text(text)?;
    let mut column = start_of(name);
    if is_plain(text) { Ok(folded(text, column)) } else { Ok(encoded(text, Q_TEXT, &mut column)) }
}

/// A mailbox with its name as a quoted string or as encoded words, never as both (RFC 2047 5).
pub(super) fn mailbox(display_name: Option<&str>, address: &str, name: &str) -> Result<String, ComposeError> {
    let Some(text) = display_name.filter(|text| !text.is_empty()) else { return Ok(format!("<{address}>")) };
    check_header_text(text)?;
    let mut column = start_of(name);
    let quoted = format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
    let phrase = if is_printable(text) && quoted.len() <= MAX_PLAIN_WORD {
        column += quoted.len();
        quoted
    } else {
        encoded(text, Q_PHRASE, &mut column)
    };
    let separator = if column + " <>".len() + address.len() > WIDTH { FOLD } else { " " };
    Ok(format!("{phrase}{separator}<{address}>"))
}

/// The column at which a header's value starts.
fn start_of(name: &str) -> usize {
    name.len() + ": ".len()
}

/// Checks what is to stand in a subject or a name before it is stored. [`compose`](super::compose) checks it again.
///
/// # Errors
/// [`ComposeError::HeaderText`], where it holds a control character or a line break of any script.
pub fn check_header_text(text: &str) -> Result<(), ComposeError> {
    if text.chars().any(breaks_a_line) { Err(ComposeError::HeaderText) } else { Ok(()) }
}

/// ASCII that no reader takes for an encoded word (RFC 2047 6.2).
fn is_printable(text: &str) -> bool {
    text.is_ascii() && !text.contains("=?")
}

/// It reads back as it is, folded at its spaces: they stand singly between words, none of which is too long.
fn is_plain(text: &str) -> bool {
    is_printable(text) && text.split(' ').all(|word| !word.is_empty() && word.len() <= MAX_PLAIN_WORD)
}

/// Text of words between single spaces, folded at them.
pub(in crate::mail) fn folded(text: &str, mut column: usize) -> String {
    let mut value = String::with_capacity(text.len() + text.len() / 20);
    for (index, word) in text.split(' ').enumerate() {
        if index > 0 {
            let fits = column + " ".len() + word.len() <= WIDTH;
            value.push_str(if fits { " " } else { FOLD });
            column = if fits { column + " ".len() } else { " ".len() };
        }
        value.push_str(word);
        column += word.len();
    }
    value
}

/// As encoded words of at most 75 characters, none of which splits a character (RFC 2047 2 and 5), in whichever
/// encoding is shorter.
fn encoded(text: &str, q: WordEncoder, column: &mut usize) -> String {
    let encoder = if q.payload_len(text) <= B.payload_len(text) { q } else { B };
    let mut value = String::new();
    encoder.encode_words("utf-8", text, column, Fold::HEADER, &mut value);
    value
}
