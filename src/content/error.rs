//! What is wrong with a template, and why a message cannot be rendered.

/// A template that does not fit its content, or a letterhead that cannot be used. Names templates, fields and
/// constructs, and never a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TemplateError {
    /// It is not a template.
    #[error("{template} is no template: a fault near line {line}")]
    Syntax {
        /// The template.
        template: String,
        /// Where; 0 where that is not known.
        line: usize,
    },
    /// The first line of a text does not begin with `Subject: `, or no text follows.
    #[error("{template} does not begin with its subject and an empty line")]
    Subject {
        /// The template.
        template: String,
    },
    /// A content has no template, or only one of the two.
    #[error("{template} is missing")]
    Missing {
        /// The template.
        template: String,
    },
    /// A template is of no content.
    #[error("{template} is of no content")]
    Unclaimed {
        /// The template.
        template: String,
    },
    /// It names a field that its content lacks.
    #[error("{template} names {field}, which its content lacks")]
    UnknownField {
        /// The template.
        template: String,
        /// The field.
        field: String,
    },
    /// It never says what its content has; a link, in HTML, both as a target and as a text that can be read.
    #[error("{template} leaves out {field}")]
    UnusedField {
        /// The template.
        template: String,
        /// The field.
        field: String,
    },
    /// It says what may be missing without asking first whether it is there.
    #[error("{template} says {field}, which may be missing, without asking")]
    Unguarded {
        /// The template.
        template: String,
        /// The field.
        field: String,
    },
    /// It says something unescaped.
    #[error("{template} says {field} unescaped")]
    Unescaped {
        /// The template.
        template: String,
        /// The field.
        field: String,
    },
    /// It includes a template that is not there.
    #[error("{template} includes {partial}, which is not there")]
    UnknownPartial {
        /// The template.
        template: String,
        /// What is included.
        partial: String,
    },
    /// It uses what templates of e-mails may not use.
    #[error("{template} may not use {construct}")]
    Unsupported {
        /// The template.
        template: String,
        /// What it uses.
        construct: String,
    },
    /// A sample could not be rendered with it.
    #[error("{template} does not render its sample")]
    Unrenderable {
        /// The template.
        template: String,
    },
    /// The service has no name, or its home is not an absolute http or https URL.
    #[error("the letterhead needs a service's name and an absolute https URL as its home")]
    Letterhead,
}

/// Why a message cannot be rendered. Never shows any of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RenderError {
    /// A link is not an absolute http or https URL of visible ASCII.
    #[error("{field} is no absolute https URL")]
    Link {
        /// The content's field.
        field: &'static str,
    },
    /// The template could not be rendered.
    #[error("the template of {content} could not be rendered")]
    Template {
        /// The content's name.
        content: &'static str,
    },
}
