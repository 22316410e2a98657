//! Contents rendered.

use std::fmt;

use handlebars::{Handlebars, html_escape, no_escape};
use serde_json::{Map, Value, json};

use super::error::{RenderError, TemplateError};
use super::facts::{Twin, is_link};
use super::templates::{Parsed, Sources, embedded, file};
use super::{Content, check, harmless, wrap};

/// Whose e-mails they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Letterhead {
    /// The service's name, as its users know it.
    pub service: String,
    /// Its start page, where users find help.
    pub home: String,
}

/// An e-mail's words.
#[derive(Clone, PartialEq, Eq)]
pub struct Rendered {
    /// The subject: one line without controls.
    pub subject: String,
    /// The text, in lines of at most 72 characters where they hold no longer word.
    pub text: String,
    /// The page.
    pub html: String,
}

impl fmt::Debug for Rendered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Rendered")
    }
}

/// Renders contents. Its templates are checked when it is made.
pub struct Renderer {
    service: String,
    home: String,
    text: Handlebars<'static>,
    html: Handlebars<'static>,
}

impl fmt::Debug for Renderer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Renderer").field("service", &self.service).field("home", &self.home).finish_non_exhaustive()
    }
}

impl Renderer {
    /// Takes the templates that are part of the program.
    ///
    /// # Errors
    /// A template that does not fit its content; the first that is found.
    pub fn new(letterhead: &Letterhead) -> Result<Self, TemplateError> {
        Self::with(letterhead, &embedded())
    }

    /// Takes these templates, once they are checked.
    pub(super) fn with(letterhead: &Letterhead, sources: &Sources<'_>) -> Result<Self, TemplateError> {
        let service = harmless::word(&letterhead.service);
        if service.is_empty() || !is_link(&letterhead.home) {
            return Err(TemplateError::Letterhead);
        }
        check::check(sources)?;
        let (mut text, mut html) = (registry(no_escape), registry(html_escape));
        for part in &sources.parts {
            for (registry, twin) in [(&mut text, Twin::Text), (&mut html, Twin::Html)] {
                if let Some(Parsed { template, .. }) = part.parse(twin)? {
                    registry.register_template(part.name, template);
                }
            }
        }
        for content in &sources.contents {
            if let Some(parsed) = content.parse_text()? {
                text.register_template(&subject_of(content.name), parsed.subject.template);
                text.register_template(content.name, parsed.body.template);
            }
            if let Some(Parsed { template, .. }) = content.parse(Twin::Html)? {
                html.register_template(content.name, template);
            }
        }
        let renderer = Self { service, home: letterhead.home.clone(), text, html };
        for sample in Content::samples() {
            let unrenderable = |_| TemplateError::Unrenderable { template: file(sample.name(), Twin::Text) };
            renderer.render(&sample).map_err(unrenderable)?;
        }
        Ok(renderer)
    }

    /// Renders a content. The same content gives the same words, in every attempt and every process of a release.
    ///
    /// # Errors
    /// See [`RenderError`].
    pub fn render(&self, content: &Content) -> Result<Rendered, RenderError> {
        let facts = content.facts();
        let name = content.name();
        let fill = |registry: &Handlebars<'_>, template: &str, values: &Map<String, Value>| {
            registry.render(template, values).map_err(|_| RenderError::Template { content: name })
        };
        let mut letter = json!({ "service": self.service, "home": self.home });
        let mut values = facts.values(Twin::Text)?;
        values.insert(LETTER.to_owned(), letter.clone());
        let subject = harmless::word(&fill(&self.text, &subject_of(name), &values)?);
        let text = wrap::wrap(&fill(&self.text, name, &values)?);
        letter["subject"] = json!(subject);
        let mut values = facts.values(Twin::Html)?;
        values.insert(LETTER.to_owned(), letter);
        let html = fill(&self.html, name, &values)?;
        Ok(Rendered { subject, text, html })
    }
}

/// What every template may say beside its content's facts: `service` and `home`, and in HTML the message's `subject`.
pub(super) const LETTER: &str = "letter";

fn subject_of(name: &str) -> String {
    format!("{name} (subject)")
}

fn registry(escape: fn(&str) -> String) -> Handlebars<'static> {
    let mut registry = Handlebars::new();
    registry.set_strict_mode(true);
    registry.register_escape_fn(escape);
    registry
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// The renderer with the text of an alert replaced.
    fn with_alert(text: &str) -> Result<Renderer, TemplateError> {
        let mut sources = embedded();
        sources.contents.iter_mut().filter(|source| source.name == "alert").for_each(|source| source.text = Some(text));
        Renderer::with(&Letterhead { service: "S".into(), home: "https://a.example/".into() }, &sources)
    }

    const BODY: &str =
        "\n\n{{#> layout reason=\"x\"}}{{title}}{{text}}{{page}}{{#if alerts}}{{alerts}}{{/if}}{{/layout}}";

    #[test]
    fn whatever_its_template_says_a_subject_is_one_line() {
        let renderer = with_alert(&format!("Subject: {{{{text}}}}{BODY}")).unwrap();
        let alert = Content::samples().into_iter().find(|sample| sample.name() == "alert").unwrap();
        let rendered = renderer.render(&alert).unwrap();
        assert!(rendered.subject.ends_with(" that you do not know.") && !rendered.subject.contains('\n'));
    }

    #[test]
    fn a_renderer_with_a_template_that_does_not_fit_is_never_made() {
        let unescaped = with_alert(&format!("Subject: {{{{{{title}}}}}}{BODY}")).unwrap_err();
        assert_eq!(unescaped.to_string(), "alert.txt (subject) says title unescaped");
        let left_out = with_alert(&format!("Subject: x{}", BODY.replace("{{page}}", ""))).unwrap_err();
        assert_eq!(left_out.to_string(), "alert.txt leaves out page");
    }
}
