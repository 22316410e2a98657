//! Templates checked against the contents they are for, without rendering them: strict mode of the engine sees neither a
//! name that is missing inside a condition nor a field that is never said.

mod place;
mod scope;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
mod walk;

use std::collections::{BTreeMap, BTreeSet};

use self::scope::Field;
use self::walk::Walk;
use super::Content;
use super::error::TemplateError;
use super::facts::{Facts, Kind, Twin};
use super::templates::{Parsed, Source, Sources, file};

/// The parts of one twin, by name.
type Parts = BTreeMap<String, Parsed>;

/// Checks all templates.
///
/// # Errors
/// The first fault.
pub(super) fn check(sources: &Sources<'_>) -> Result<(), TemplateError> {
    if let Some(source) = sources.contents.iter().find(|source| !Content::NAMES.contains(&source.name)) {
        return Err(TemplateError::Unclaimed { template: source.name.to_owned() });
    }
    let (text, html) = (parts(sources, Twin::Text)?, parts(sources, Twin::Html)?);
    let mut included = BTreeSet::new();
    for (name, facts) in facts_by_name() {
        let source = sources.contents.iter().find(|source| source.name == name);
        included.extend(check_text(name, source, &facts, &text)?);
        included.extend(check_html(name, source, &facts, &html)?);
    }
    match text.values().chain(html.values()).find(|part| !included.contains(&part.file)) {
        Some(part) => Err(TemplateError::Unclaimed { template: part.file.clone() }),
        None => Ok(()),
    }
}

fn parts(sources: &Sources<'_>, twin: Twin) -> Result<Parts, TemplateError> {
    let parsed = sources.parts.iter().map(|part| Ok((part.name.to_owned(), part.parse(twin)?)));
    let parsed = parsed.collect::<Result<Vec<_>, _>>()?;
    Ok(parsed.into_iter().filter_map(|(name, parsed)| Some((name, parsed?))).collect())
}

/// The facts of each content once: they are the same in all its samples but for their values.
fn facts_by_name() -> BTreeMap<&'static str, Facts> {
    Content::samples().iter().map(|sample| (sample.name(), sample.facts())).collect()
}

fn check_text(
    name: &str,
    source: Option<&Source<'_>>,
    facts: &Facts,
    parts: &Parts,
) -> Result<BTreeSet<String>, TemplateError> {
    let template = file(name, Twin::Text);
    let parsed = source.map(Source::parse_text).transpose()?.flatten();
    let Some(parsed) = parsed else { return Err(TemplateError::Missing { template }) };
    let mut walk = Walk::new(Twin::Text, parts);
    let scope = Field::root(facts, Twin::Text);
    walk.template(&parsed.subject, &scope)?;
    walk.template(&parsed.body, &scope)?;
    match facts.iter().find(|fact| !walk.told.said.contains(fact.name)) {
        Some(fact) => Err(TemplateError::UnusedField { template, field: fact.name.to_owned() }),
        None => Ok(walk.included),
    }
}

fn check_html(
    name: &str,
    source: Option<&Source<'_>>,
    facts: &Facts,
    parts: &Parts,
) -> Result<BTreeSet<String>, TemplateError> {
    let template = file(name, Twin::Html);
    let parsed = source.map(|source| source.parse(Twin::Html)).transpose()?.flatten();
    let Some(parsed) = parsed else { return Err(TemplateError::Missing { template }) };
    let mut walk = Walk::new(Twin::Html, parts);
    walk.template(&parsed, &Field::root(facts, Twin::Html))?;
    let is_left_out =
        |name, kind| !walk.told.said.contains(name) || (kind == Kind::Link && !walk.told.targets.contains(name));
    match facts.iter().find(|fact| is_left_out(fact.name, fact.kind)) {
        Some(fact) => Err(TemplateError::UnusedField { template, field: fact.name.to_owned() }),
        None => Ok(walk.included),
    }
}
