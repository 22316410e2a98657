//! Goes through a template and all that it includes, in the order in which it is rendered.

use std::collections::{BTreeSet, HashMap};

use handlebars::Template;
use handlebars::template::{DecoratorTemplate, HelperTemplate, Parameter, TemplateElement};

use super::Parts;
use super::place::{Place, Reader};
use super::scope::{Field, Shape};
use crate::content::error::TemplateError;
use crate::content::facts::Twin;
use crate::content::templates::Parsed;

/// How deep templates include one another at most.
const DEPTH: usize = 8;
const BLOCK: &str = "@partial-block";

/// What was found on the way.
pub(super) struct Walk<'a> {
    twin: Twin,
    parts: &'a Parts,
    reader: Reader,
    /// What is said whichever way conditions go.
    pub(super) told: Told,
    /// The files of the parts that were included.
    pub(super) included: BTreeSet<String>,
    /// Facts that are known to be there.
    guards: Vec<String>,
}

/// Facts that are told.
#[derive(Debug, Clone, Default)]
pub(super) struct Told {
    /// Where people read them.
    pub(super) said: BTreeSet<String>,
    /// As the target of a link.
    pub(super) targets: BTreeSet<String>,
}

impl Told {
    /// What is told either way, where `present` is told if a fact is there and `absent` if it is not: that fact is then
    /// told whenever it can be.
    fn either(present: &Self, absent: &Self, fact: Option<&String>) -> Self {
        let either = |present: &BTreeSet<String>, absent: &BTreeSet<String>| {
            let of_fact = fact.filter(|fact| present.contains(*fact)).into_iter();
            present.intersection(absent).chain(of_fact).cloned().collect()
        };
        Self { said: either(&present.said, &absent.said), targets: either(&present.targets, &absent.targets) }
    }
}

/// Where the walk is.
#[derive(Clone, Copy)]
struct At<'a> {
    file: &'a str,
    scope: &'a Field,
    /// What the including template has between its tags.
    block: Option<&'a Template>,
    in_list: bool,
    depth: usize,
}

impl At<'_> {
    fn unsupported(&self, construct: impl Into<String>) -> TemplateError {
        TemplateError::Unsupported { template: self.file.to_owned(), construct: construct.into() }
    }

    fn find(&self, path: &str) -> Result<&Field, TemplateError> {
        self.scope.find(path).ok_or_else(|| {
            if path.starts_with('@') || path.contains(['/', '[']) {
                return self.unsupported(path);
            }
            TemplateError::UnknownField { template: self.file.to_owned(), field: path.to_owned() }
        })
    }
}

impl<'a> Walk<'a> {
    pub(super) fn new(twin: Twin, parts: &'a Parts) -> Self {
        let (told, included, guards) = Default::default();
        Self { twin, parts, reader: Reader::new(), told, included, guards }
    }

    pub(super) fn template(&mut self, parsed: &Parsed, scope: &Field) -> Result<(), TemplateError> {
        let at = At { file: &parsed.file, scope, block: None, in_list: false, depth: 0 };
        self.elements(&parsed.template, at)
    }

    fn elements(&mut self, template: &Template, at: At<'_>) -> Result<(), TemplateError> {
        template.elements.iter().try_for_each(|element| self.element(element, at))
    }

    fn element(&mut self, element: &TemplateElement, at: At<'_>) -> Result<(), TemplateError> {
        match element {
            TemplateElement::RawString(raw) => {
                if self.twin == Twin::Html && !self.reader.read(raw) {
                    return Err(at.unsupported("a target of more than one field"));
                }
                Ok(())
            }
            TemplateElement::Comment(_) => Ok(()),
            TemplateElement::Expression(expression) => self.expression(expression, at),
            TemplateElement::HtmlExpression(expression) => {
                let field = expression.name.as_name().unwrap_or("an expression").to_owned();
                Err(TemplateError::Unescaped { template: at.file.to_owned(), field })
            }
            TemplateElement::HelperBlock(helper) => self.helper(helper, at),
            TemplateElement::PartialExpression(partial) | TemplateElement::PartialBlock(partial) => {
                self.partial(partial, at)
            }
            _ => Err(at.unsupported("a decorator")),
        }
    }

    fn expression(&mut self, expression: &HelperTemplate, at: At<'_>) -> Result<(), TemplateError> {
        let path = name_of(&expression.name, at)?;
        if !expression.params.is_empty() || !expression.hash.is_empty() {
            return Err(at.unsupported(path));
        }
        let field = at.find(path)?;
        let Shape::Said { is_link } = field.shape else {
            return Err(at.unsupported(format!("all of {path}")));
        };
        if field.optional && !self.guards.contains(&field.fact) {
            return Err(TemplateError::Unguarded { template: at.file.to_owned(), field: path.to_owned() });
        }
        match (self.twin, self.reader.place) {
            (Twin::Text, _) | (Twin::Html, Place::Text) => self.told.said.insert(field.fact.clone()),
            (Twin::Html, Place::Target) if is_link => self.told.targets.insert(field.fact.clone()),
            (Twin::Html, _) => return Err(at.unsupported(format!("{path} in a tag"))),
        };
        self.reader.said();
        Ok(())
    }

    fn helper(&mut self, helper: &HelperTemplate, at: At<'_>) -> Result<(), TemplateError> {
        let name = name_of(&helper.name, at)?;
        let [parameter] = helper.params.as_slice() else { return Err(at.unsupported(name)) };
        if !helper.hash.is_empty() || helper.block_param.is_some() {
            return Err(at.unsupported(name));
        }
        let path = name_of(parameter, at)?;
        let is_local = at.in_list && matches!(path, "@first" | "@last");
        let (template, inverse) = (helper.template.as_ref(), helper.inverse.as_ref());
        match name {
            "if" | "unless" if is_local => self.branches([(template, at), (inverse, at)], None),
            "if" => self.branches([(template, at), (inverse, at)], Some(&at.find(path)?.fact)),
            "unless" => self.branches([(inverse, at), (template, at)], Some(&at.find(path)?.fact)),
            "each" => {
                let Shape::List(item) = &at.find(path)?.shape else {
                    return Err(at.unsupported(format!("each of {path}")));
                };
                let inside = At { scope: item, in_list: true, ..at };
                self.branches([(template, inside), (inverse, at)], Some(&item.fact))
            }
            _ => Err(at.unsupported(name)),
        }
    }

    /// Goes both ways: what is rendered where a fact is there, and what is where it is not.
    fn branches(
        &mut self,
        [(present, inside), (absent, at)]: [(Option<&Template>, At<'_>); 2],
        fact: Option<&String>,
    ) -> Result<(), TemplateError> {
        let before = (self.told.clone(), self.reader.clone());
        self.guards.extend(fact.cloned());
        let walked = present.map_or(Ok(()), |present| self.elements(present, inside));
        self.guards.truncate(self.guards.len() - usize::from(fact.is_some()));
        walked?;
        let (told, reader) =
            (std::mem::replace(&mut self.told, before.0), std::mem::replace(&mut self.reader, before.1));
        absent.map_or(Ok(()), |absent| self.elements(absent, at))?;
        self.told = Told::either(&told, &self.told, fact);
        if self.reader != reader {
            return Err(at.unsupported("a tag that begins or ends in one branch alone"));
        }
        Ok(())
    }

    fn partial(&mut self, partial: &DecoratorTemplate, at: At<'_>) -> Result<(), TemplateError> {
        let name = name_of(&partial.name, at)?;
        if !partial.params.is_empty() || at.depth == DEPTH {
            return Err(at.unsupported(format!("{name} so")));
        }
        if name == BLOCK {
            let Some(block) = at.block else { return Err(at.unsupported(BLOCK)) };
            return self.elements(block, At { block: None, depth: at.depth + 1, ..at });
        }
        let Some(part) = self.parts.get(name) else {
            return Err(TemplateError::UnknownPartial { template: at.file.to_owned(), partial: name.to_owned() });
        };
        let arguments = arguments(&partial.hash, at)?;
        let scope = at.scope.with(arguments).ok_or_else(|| at.unsupported(format!("arguments of {name} so")))?;
        self.included.insert(part.file.clone());
        let file = if partial.template.is_some() { at.file } else { &part.file };
        let inside = At { file, scope: &scope, block: partial.template.as_ref(), depth: at.depth + 1, ..at };
        self.elements(&part.template, inside)
    }
}

/// A partial's arguments: fields, or texts of the template itself.
fn arguments(hash: &HashMap<String, Parameter>, at: At<'_>) -> Result<Vec<(String, Field)>, TemplateError> {
    let argument = |(name, value): (&String, &Parameter)| match value {
        Parameter::Literal(_) => Ok((name.clone(), Field::said("a text of the template"))),
        value => Ok((name.clone(), at.find(name_of(value, at)?)?.clone())),
    };
    hash.iter().map(argument).collect()
}

fn name_of<'p>(parameter: &'p Parameter, at: At<'_>) -> Result<&'p str, TemplateError> {
    parameter.as_name().ok_or_else(|| at.unsupported("a nested expression"))
}
