//! A plain text as HTML has it: paragraphs, lines, and runs that are links or not.

use serde_json::{Value, json};
use url::Url;

/// A list of paragraphs, each a list of lines, each a list of runs `{"text": .., "link": .. or null}`.
pub(super) fn of(text: &str) -> Value {
    let lines: Vec<&str> = text.lines().collect();
    let paragraphs = lines.split(|line| line.trim().is_empty()).filter(|paragraph| !paragraph.is_empty());
    paragraphs.map(|paragraph| paragraph.iter().map(|line| runs(line)).collect::<Value>()).collect()
}

fn runs(line: &str) -> Value {
    let mut runs = Vec::new();
    let (mut plain, mut rest) = (String::new(), line);
    while let Some((before, after)) = rest.split_once("https://") {
        let candidate = &rest[before.len()..];
        let end = candidate.find(|c: char| !is_simple(c)).unwrap_or(candidate.len());
        let url = candidate[..end].trim_end_matches(['.', ',', ':', ';', '!', '?', '\'']);
        let after_word = before.chars().next_back().is_some_and(|c| c.is_alphanumeric());
        plain.push_str(before);
        let whole = !candidate[end..].starts_with(|c: char| c == '@' || c == '\\' || !c.is_ascii());
        let has_host = after.starts_with(|c: char| c.is_ascii_alphanumeric());
        if whole && has_host && !after_word && Url::parse(url).is_ok() {
            runs.push(run(std::mem::take(&mut plain), None));
            runs.push(run(url.to_owned(), Some(url)));
            rest = &candidate[url.len()..];
        } else {
            plain.push_str("https://");
            rest = after;
        }
    }
    plain.push_str(rest);
    runs.push(run(plain, None));
    runs.into_iter().flatten().collect()
}

fn run(text: String, link: Option<&str>) -> Option<Value> {
    (!text.is_empty()).then(|| json!({ "text": text, "link": link }))
}

/// What a link may be of. Without `@`, so that none names another host than it seems to, and without brackets, which
/// more often stand around a link than in it.
fn is_simple(c: char) -> bool {
    c.is_ascii_alphanumeric() || "-._~:/?#&=%+,;!$*'".contains(c)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn links(line: &str) -> Vec<String> {
        let runs = runs(line);
        let runs = runs.as_array().unwrap();
        let whole: String = runs.iter().map(|run| run["text"].as_str().unwrap()).collect();
        assert_eq!(whole, line, "nothing is lost");
        runs.iter().filter_map(|run| run["link"].as_str()).map(str::to_owned).collect()
    }

    #[test]
    fn paragraphs_and_lines_are_kept() {
        let text = |text: &str| json!([{ "text": text, "link": null }]);
        assert_eq!(of("a\nb\n\n\n \nc"), json!([[text("a"), text("b")], [text("c")]]));
        assert_eq!(of(""), json!([]));
    }

    #[test]
    fn simple_links_are_links_without_what_ends_a_sentence() {
        assert_eq!(links("see https://a.example/b?c=d&e=f#g."), ["https://a.example/b?c=d&e=f#g"]);
        assert_eq!(links("(https://a.example/b), https://c.example!"), ["https://a.example/b", "https://c.example"]);
    }

    #[test]
    fn what_may_not_be_what_it_seems_is_no_link() {
        for line in ["https://bank.example@evil.example/", "http://a.example/", "javascript:alert(1)", "https://", "x"]
        {
            assert_eq!(links(line), [] as [&str; 0], "{line}");
        }
        for line in
            ["https://bänk.example/", "https://bank.example\\@evil.example", "xhttps://a.example/", "https:///x?"]
        {
            assert_eq!(links(line), [] as [&str; 0], "{line}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_is_lost_and_every_link_is_its_own_text(line in "(https://|[a-z.@/?#<>\"' ]|\\PC){0,20}") {
            for link in links(&line) {
                assert!(link.starts_with("https://") && !link.contains('@'), "{link}");
            }
        }
    }
}
