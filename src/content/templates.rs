//! The templates, which are part of the program: for each content a text with its subject, and its twin in HTML.

use handlebars::Template;

use super::error::TemplateError;
use super::facts::Twin;

/// The template of a content, or a part that templates include, before it is parsed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Source<'a> {
    pub(super) name: &'a str,
    pub(super) text: Option<&'a str>,
    pub(super) html: Option<&'a str>,
}

/// Templates before they are parsed.
#[derive(Debug, Clone)]
pub(super) struct Sources<'a> {
    pub(super) contents: Vec<Source<'a>>,
    /// What is included: the shared layout and its pieces.
    pub(super) parts: Vec<Source<'a>>,
}

macro_rules! template {
    ($file:expr) => {
        Some(include_str!(concat!("../../templates/email/", $file)))
    };
}

macro_rules! twins {
    ($($name:literal),*) => {
        vec![$(Source {
            name: $name,
            text: template!(concat!($name, ".txt.hbs")),
            html: template!(concat!($name, ".html.hbs")),
        }),*]
    };
}

/// The templates of `templates/email/`.
pub(super) fn embedded() -> Sources<'static> {
    let contents = twins!(
        "verification_link",
        "recovery_link",
        "account_secured",
        "account_recovered",
        "address_replaced",
        "address_removed",
        "address_added",
        "passkey_added",
        "passkey_removed",
        "new_sign_in",
        "alert",
        "announcement"
    );
    let of_html = |name, html| Source { name, text: None, html };
    let mut parts = twins!("layout");
    parts.push(of_html("button", template!("button.html.hbs")));
    parts.push(of_html("link", template!("link.html.hbs")));
    parts.push(of_html("paragraphs", template!("paragraphs.html.hbs")));
    Sources { contents, parts }
}

/// A parsed template, known by its file's name without `.hbs`.
pub(super) struct Parsed {
    pub(super) file: String,
    pub(super) template: Template,
}

/// A parsed text: its subject is its first line.
pub(super) struct ParsedText {
    pub(super) subject: Parsed,
    pub(super) body: Parsed,
}

pub(super) fn file(name: &str, twin: Twin) -> String {
    match twin {
        Twin::Text => format!("{name}.txt"),
        Twin::Html => format!("{name}.html"),
    }
}

impl Source<'_> {
    pub(super) fn file(&self, twin: Twin) -> String {
        file(self.name, twin)
    }

    /// The template of this twin, if it has one.
    pub(super) fn parse(&self, twin: Twin) -> Result<Option<Parsed>, TemplateError> {
        let source = match twin {
            Twin::Text => self.text,
            Twin::Html => self.html,
        };
        source.map(|source| parse(self.file(twin), source, 0)).transpose()
    }

    /// The text and its subject.
    pub(super) fn parse_text(&self) -> Result<Option<ParsedText>, TemplateError> {
        let Some(source) = self.text else { return Ok(None) };
        let template = self.file(Twin::Text);
        let parts = source.strip_prefix("Subject: ").and_then(|rest| rest.split_once("\n\n"));
        let Some((subject, body)) = parts.filter(|(subject, _)| !subject.contains('\n')) else {
            return Err(TemplateError::Subject { template });
        };
        let subject = parse(format!("{template} (subject)"), subject, 0)?;
        Ok(Some(ParsedText { subject, body: parse(template, body, 2)? }))
    }
}

/// Takes a template that so many lines of its file stand before.
fn parse(file: String, source: &str, before: usize) -> Result<Parsed, TemplateError> {
    match Template::compile(source) {
        Ok(template) => Ok(Parsed { file, template }),
        Err(error) => {
            let line = error.pos().map_or(0, |(line, _)| line + before);
            Err(TemplateError::Syntax { template: file, line })
        }
    }
}
