//! A page read strictly: what a lenient mail client would mend is a fault here.

use std::collections::BTreeMap;

use postrider::content::Content;

use crate::support::{HOME, rendered, urls};

const VOID: [&str; 3] = ["br", "meta", "img"];

/// An element as it was written.
#[derive(Debug, Clone)]
pub struct Element {
    pub name: String,
    pub attributes: BTreeMap<String, String>,
}

/// A page.
pub struct Page {
    /// Its tags as they were written, but for end tags.
    pub tags: Vec<String>,
    /// What it shows, with one space where there is white space.
    pub shown: String,
    /// The target and the text of each link.
    pub links: Vec<(String, String)>,
    /// The target of each link.
    pub targets: Vec<String>,
    /// What its styles say.
    pub style: String,
    /// Its texts that are not white space alone, each with the elements that it is in, the outermost first.
    pub texts: Vec<(String, Vec<Element>)>,
}

/// A text with one space where there is white space.
pub fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl Page {
    pub fn parse(html: &str) -> Self {
        let html = without_comments(html);
        let mut rest = html.strip_prefix("<!doctype html>\n").expect("a doctype");
        let (mut page, mut open) = (Self::empty(), Vec::<Element>::new());
        let mut target: Option<(String, usize)> = None;
        while let Some((text, after)) = rest.split_once('<') {
            page.shown.push_str(&decoded(text));
            if !text.trim().is_empty() {
                page.texts.push((decoded(text), open.clone()));
            }
            let (tag, after) = after.split_once('>').expect("a tag ends");
            rest = after;
            if let Some(name) = tag.strip_prefix('/') {
                assert_eq!(open.pop().expect("a tag began").name, name, "tags are nested");
                if let ("a", Some((target, from))) = (name, target.take()) {
                    page.links.push((target, page.shown[from..].to_owned()));
                }
                continue;
            }
            page.tags.push(tag.to_owned());
            let (name, attributes) = parse_tag(tag);
            match name.as_str() {
                "a" => {
                    page.targets.push(attributes["href"].clone());
                    target = Some((attributes["href"].clone(), page.shown.len()));
                }
                "br" => page.shown.push('\n'),
                "style" => {
                    let (style, after) = rest.split_once("</style>").expect("a style ends");
                    page.style.push_str(style);
                    rest = after;
                    continue;
                }
                _ => {}
            }
            if !VOID.contains(&name.as_str()) {
                open.push(Element { name, attributes });
            }
        }
        assert!(open.is_empty() && rest.trim().is_empty(), "all ends");
        page.shown = words(&page.shown);
        page
    }

    fn empty() -> Self {
        let (tags, shown, links, targets, style, texts) = Default::default();
        Self { tags, shown, links, targets, style, texts }
    }
}

/// The page without what is for one mail client alone, each time on a line of its own.
fn without_comments(html: &str) -> String {
    let is_comment = |line: &&str| line.starts_with("<!--[if mso]>") && line.ends_with("<![endif]-->");
    let lines = html.lines().filter(|line| !is_comment(line));
    lines.flat_map(|line| [line, "\n"]).collect()
}

/// The name and the attributes of a tag, each of which is quoted.
fn parse_tag(tag: &str) -> (String, BTreeMap<String, String>) {
    let (name, mut rest) = tag.split_once(' ').unwrap_or((tag, ""));
    assert!(!name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit()), "{tag}");
    let mut attributes = BTreeMap::new();
    while !rest.is_empty() {
        let (attribute, after) = rest.split_once("=\"").expect("an attribute has a quoted value");
        let (value, after) = after.split_once('"').expect("a value ends");
        let is_name = |name: &str| name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-');
        assert!(is_name(attribute) && !attribute.starts_with("on"), "{tag}");
        assert!(attributes.insert(attribute.to_owned(), decoded(value)).is_none(), "{tag}");
        assert!(after.is_empty() || after.starts_with(' '), "{tag}");
        rest = after.trim_start();
    }
    (name.to_owned(), attributes)
}

/// A text without entities, of which it may hold these alone.
fn decoded(text: &str) -> String {
    assert!(!text.contains('>'), "{text}");
    let mut parts = text.split('&');
    let mut decoded = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (entity, rest) = part.split_once(';').expect("an entity ends");
        decoded.push(match entity {
            "amp" => '&',
            "lt" => '<',
            "gt" => '>',
            "quot" => '"',
            "#x27" => '\'',
            "#x60" => '`',
            "#x3D" => '=',
            other => panic!("&{other};"),
        });
        decoded.push_str(rest);
    }
    decoded
}

fn pages() -> Vec<(Content, String, Page)> {
    let of = |(content, rendered): (Content, postrider::content::Rendered)| {
        (content, rendered.text, Page::parse(&rendered.html))
    };
    rendered().into_iter().map(of).collect()
}

#[test]
fn a_page_and_its_text_have_the_same_links() {
    for (content, text, page) in pages() {
        let mut targets = page.targets.clone();
        targets.dedup();
        assert_eq!(targets, urls(&text), "{content:?}");
    }
}

#[test]
fn no_link_is_hidden_behind_another_text() {
    for (content, _, page) in pages() {
        for (target, text) in &page.links {
            let is_label = !text.contains("://") && !text.contains('.');
            let is_shown = page.links.iter().any(|(other, text)| other == target && text == target);
            assert!(target == text || (is_label && is_shown), "{content:?}: {text} leads to {target}");
        }
    }
}

#[test]
fn a_page_says_all_that_its_text_says() {
    for (content, text, page) in pages() {
        let skipped = |line: &&str| !line.starts_with("- ");
        for paragraph in text.split("\n\n").map(words).filter(|paragraph| skipped(&paragraph.as_str())) {
            assert!(page.shown.contains(&paragraph), "{content:?} lacks {paragraph}");
        }
    }
}

#[test]
fn a_page_loads_nothing() {
    for (content, _, page) in pages() {
        for tag in &page.tags {
            let name = tag.split(' ').next().unwrap();
            assert!(
                !["img", "link", "script", "iframe", "object", "form", "base", "svg"].contains(&name),
                "{content:?}: {tag}"
            );
            let (_, attributes) = parse_tag(tag);
            assert!(
                !["src", "background", "srcset", "action"].iter().any(|name| attributes.contains_key(*name)),
                "{tag}"
            );
            assert!(!attributes.get("style").is_some_and(|style| style.contains("url(")), "{tag}");
        }
        assert!(!page.style.contains("url(") && !page.style.contains("@import"), "{content:?}");
        assert!(page.targets.iter().all(|target| target.starts_with("https://")), "{content:?}: {:?}", page.targets);
    }
}

#[test]
fn a_page_is_for_dark_mode_narrow_screens_and_readers() {
    for (content, _, page) in pages() {
        for tag in [
            "html lang=\"en\" dir=\"ltr\"",
            "meta charset=\"utf-8\"",
            "meta name=\"color-scheme\" content=\"light dark\"",
        ] {
            assert!(page.tags.iter().any(|written| written == tag), "{content:?} lacks {tag}");
        }
        let tables = page.tags.iter().filter(|tag| tag.starts_with("table"));
        tables.for_each(|tag| assert!(tag.contains("role=\"presentation\""), "{tag}"));
        assert!(page.style.contains("@media (prefers-color-scheme: dark)"), "{content:?}");
        assert!(page.tags.iter().any(|tag| tag.contains("max-width:600px")), "{content:?}");
        assert!(page.targets.contains(&HOME.to_owned()), "{content:?}");
    }
}
