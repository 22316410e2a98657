//! Texts that people chose, made harmless before they are shown to others.

/// A text of one line: controls and line breaks are spaces, runs of white space one, bidirectional controls and
/// invisible separators gone. A passkey's name can so neither begin a header line (RFC 5322 2.2) nor turn around what
/// stands beside it (Unicode TR36 2.5).
pub(super) fn word(text: &str) -> String {
    text.chars().filter_map(shown).collect::<String>().split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A text of many lines: the same, line by line, but that leading spaces and empty lines between paragraphs are kept.
pub(super) fn text(text: &str) -> String {
    let text = text.replace("\r\n", "\n").replace(['\r', '\u{2028}'], "\n").replace('\u{2029}', "\n\n");
    let line = |line: &str| line.chars().filter_map(shown).collect::<String>().trim_end().to_owned();
    text.lines().map(line).collect::<Vec<_>>().join("\n").trim_matches('\n').to_owned()
}

fn shown(c: char) -> Option<char> {
    (!is_invisible(c)).then(|| if c.is_control() { ' ' } else { c })
}

/// Unicode's Bidi_Control, and characters that show nothing at all. Joiners stay: scripts and emoji need them.
fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' // Bidi_Control
            | '\u{00ad}' | '\u{200b}' | '\u{2060}' | '\u{feff}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_one_line_without_controls_and_overrides() {
        assert_eq!(word("Blue\r\nBcc: eve@example.com"), "Blue Bcc: eve@example.com");
        assert_eq!(word(" a\u{0}\u{7f}\u{85}b\tc\u{2028}d\u{2029}e "), "a b c d e");
        assert_eq!(word("\u{202e}moc.elpmaxe\u{2066}\u{200f}\u{200b}"), "moc.elpmaxe");
        assert_eq!(word("\u{1f469}\u{200d}\u{1f4bb} ada"), "\u{1f469}\u{200d}\u{1f4bb} ada");
    }

    #[test]
    fn a_text_keeps_its_paragraphs_and_indents() {
        assert_eq!(text("\r\na\r\n  b \u{7}\r\n\r\nc\u{2028}d\r\n"), "a\n  b\n\nc\nd");
        assert_eq!(text("a\u{202e}b\u{0}c"), "ab c");
    }

    proptest::proptest! {
        #[test]
        fn nothing_that_comes_in_leaves_a_line_break_in_a_word(text in "\\PC*|[\\x00-\\x20\\u{2000}-\\u{2070}a-c]*") {
            let word = word(&text);
            assert!(!word.chars().any(|c| c.is_control() || is_invisible(c) || matches!(c, '\u{2028}' | '\u{2029}')));
            assert_eq!(super::word(&word), word);
        }
    }
}
