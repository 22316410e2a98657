//! The layout of plain text.

/// The longest line of prose (RFC 3676 4.2 advises less than 78).
pub(super) const WIDTH: usize = 72;

/// Wraps each line by itself at spaces, and leaves one empty line where there are more. A word is never broken, so that a
/// link stays whole; what follows the first line of an item of a list is indented.
pub(super) fn wrap(text: &str) -> String {
    let mut wrapped = String::new();
    let mut empty = true;
    for line in text.lines().map(str::trim_end) {
        if line.is_empty() {
            if !empty {
                wrapped.push('\n');
            }
            empty = true;
            continue;
        }
        empty = false;
        wrap_line(line, &mut wrapped);
    }
    wrapped.truncate(wrapped.trim_end().len());
    wrapped.push('\n');
    wrapped
}

fn wrap_line(line: &str, wrapped: &mut String) {
    let spaces = line.len() - line.trim_start_matches(' ').len();
    let indent = spaces + if line[spaces..].starts_with("- ") { 2 } else { 0 };
    let mut width = spaces;
    wrapped.push_str(&line[..spaces]);
    for (index, word) in line[spaces..].split(' ').enumerate() {
        let length = word.chars().count();
        if index > 0 && width + 1 + length > WIDTH {
            wrapped.truncate(wrapped.trim_end_matches(' ').len());
            wrapped.push('\n');
            wrapped.extend(std::iter::repeat_n(' ', indent));
            width = indent;
        } else if index > 0 {
            wrapped.push(' ');
            width += 1;
        }
        wrapped.push_str(word);
        width += length;
    }
    wrapped.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_wraps_and_links_and_lists_stay() {
        let word = "seventy-two ".repeat(12);
        for line in wrap(&word).lines() {
            assert!(line.len() <= WIDTH && !line.ends_with(' '), "{line:?}");
        }
        let link = format!("https://id.example.com/{}", "x".repeat(200));
        assert_eq!(wrap(&format!("a\n\n\n\n{link}\n\n")), format!("a\n\n{link}\n"));
        let item = wrap(&format!("- {}", "item ".repeat(20)));
        assert!(item.lines().skip(1).all(|line| line.starts_with("  item")), "{item}");
    }

    proptest::proptest! {
        #[test]
        fn wrapping_changes_white_space_alone(text in "[a-c \n-]{0,300}") {
            let bare = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
            assert_eq!(bare(&wrap(&text)), bare(&text));
            assert!(wrap(&text).lines().all(|line| line.chars().count() <= WIDTH || !line.trim().contains(' ')));
        }
    }
}
