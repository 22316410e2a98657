//! The facts of a content, as its templates see them.

use chrono::{DateTime, TimeZone, Utc};
use serde_json::{Map, Value};
use url::Url;

use super::error::RenderError;
use super::{harmless, paragraphs};

/// Which of the twins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Twin {
    Text,
    Html,
}

/// What a fact is, which says how a template may use it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A text of one line.
    Word,
    /// An absolute http or https URL.
    Link,
    /// Texts of one line.
    Words,
    /// A text of many lines: in HTML a list of paragraphs, each a list of lines, each a list of runs.
    Text,
}

/// A content that states its facts. An implementation destructures the content, so that none is forgotten.
pub(super) trait Stated: Sized {
    fn facts(&self) -> Facts;
    fn samples() -> Vec<Self>;
}

/// A fact. The same content states the same facts whatever their values: one that is missing is there without a value.
pub(super) struct Fact {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) optional: bool,
    value: Value,
}

/// All that a template may say of a content.
#[derive(Default)]
pub(super) struct Facts(Vec<Fact>);

impl Facts {
    pub(super) fn word(self, name: &'static str, word: &str) -> Self {
        self.with(name, Kind::Word, false, harmless::word(word).into())
    }

    pub(super) fn words<'a>(self, name: &'static str, words: impl Iterator<Item = &'a str>) -> Self {
        self.with(name, Kind::Words, false, words.map(harmless::word).collect())
    }

    pub(super) fn text(self, name: &'static str, text: &str) -> Self {
        self.with(name, Kind::Text, false, harmless::text(text).into())
    }

    pub(super) fn time(self, name: &'static str, time: DateTime<Utc>) -> Self {
        self.with(name, Kind::Word, false, time.format("%-d %B %Y at %H:%M UTC").to_string().into())
    }

    pub(super) fn link(self, name: &'static str, link: &str) -> Self {
        self.with(name, Kind::Link, false, link.into())
    }

    pub(super) fn optional_link(self, name: &'static str, link: Option<&str>) -> Self {
        self.with(name, Kind::Link, true, link.into())
    }

    fn with(mut self, name: &'static str, kind: Kind, optional: bool, value: Value) -> Self {
        self.0.push(Fact { name, kind, optional, value });
        self
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Fact> {
        self.0.iter()
    }

    /// What a template of this twin is rendered with.
    ///
    /// # Errors
    /// A link that could not be followed, or not only be followed.
    pub(super) fn values(&self, twin: Twin) -> Result<Map<String, Value>, RenderError> {
        let value = |fact: &Fact| match (fact.kind, twin, fact.value.as_str()) {
            (Kind::Link, _, Some(link)) if !is_link(link) => Err(RenderError::Link { field: fact.name }),
            (Kind::Text, Twin::Html, Some(text)) => Ok((fact.name.to_owned(), paragraphs::of(text))),
            _ => Ok((fact.name.to_owned(), fact.value.clone())),
        };
        self.iter().map(value).collect()
    }
}

/// An absolute URL of visible ASCII, so that it stands on one line and means the same to every client.
pub(super) fn is_link(link: &str) -> bool {
    let plain = link.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'<' | b'>' | b'"'));
    plain && Url::parse(link).is_ok_and(|url| matches!(url.scheme(), "https" | "http") && url.has_host())
}

/// When samples happened.
pub(super) fn sample_time() -> DateTime<Utc> {
    Utc.timestamp_nanos(1_796_109_300_000_000_000)
}

/// The page of samples' notifications.
pub(super) fn sample_page() -> String {
    "https://id.example.com/inbox/0190b5a4".into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_absolute_and_of_one_line() {
        for link in ["https://id.example.com/verify#a", "http://127.0.0.1:8080/x?y=z&k=%20"] {
            assert!(is_link(link), "{link}");
        }
        let strange = ["", "/inbox", "javascript:alert(1)", "data:text/html,x", "https://a/ b", "https://a/\r\nx"];
        for link in strange.into_iter().chain(["https://a/\"x", "https://a/<b>", "mailto:a@b.example", "https://ü/"]) {
            assert!(!is_link(link), "{link}");
        }
    }
}
