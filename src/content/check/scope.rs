//! What a template can name at a place in it.

use std::collections::BTreeMap;

use crate::content::facts::{Fact, Facts, Kind, Twin};
use crate::content::render::LETTER;

/// Something that has a name.
#[derive(Debug, Clone)]
pub(super) struct Field {
    pub(super) shape: Shape,
    /// The fact that is said when this is: a partial's argument and an item of a list stand for the fact they come from.
    pub(super) fact: String,
    /// It may be missing.
    pub(super) optional: bool,
}

#[derive(Debug, Clone)]
pub(super) enum Shape {
    /// Can be said.
    Said { is_link: bool },
    /// A list.
    List(Box<Field>),
    /// Has names of its own.
    Fields(BTreeMap<String, Field>),
}

impl Field {
    /// The outermost scope.
    pub(super) fn root(facts: &Facts, twin: Twin) -> Self {
        let mut fields: BTreeMap<_, _> =
            facts.iter().map(|fact| (fact.name.to_owned(), Self::of(fact, twin))).collect();
        let mut letter = BTreeMap::from([
            ("service".to_owned(), Self::said("letter.service")),
            ("home".to_owned(), Self::link("letter.home", false)),
        ]);
        if twin == Twin::Html {
            letter.insert("subject".to_owned(), Self::said("letter.subject"));
        }
        fields.insert(LETTER.to_owned(), Self::fields(LETTER, letter));
        Self::fields("this", fields)
    }

    fn of(fact: &Fact, twin: Twin) -> Self {
        let said = Self::said(fact.name);
        match (fact.kind, twin) {
            (Kind::Link, _) => Self::link(fact.name, fact.optional),
            (Kind::Words, _) => Self::list(said),
            (Kind::Text, Twin::Html) => {
                let link = Self::link(&format!("{}.link", fact.name), true);
                let run = BTreeMap::from([("text".to_owned(), said), ("link".to_owned(), link)]);
                Self::list(Self::list(Self::list(Self::fields(fact.name, run))))
            }
            (Kind::Word | Kind::Text, _) => Self { optional: fact.optional, ..said },
        }
    }

    pub(super) fn said(fact: &str) -> Self {
        Self { shape: Shape::Said { is_link: false }, fact: fact.to_owned(), optional: false }
    }

    fn link(fact: &str, optional: bool) -> Self {
        Self { shape: Shape::Said { is_link: true }, fact: fact.to_owned(), optional }
    }

    fn list(item: Self) -> Self {
        Self { fact: item.fact.clone(), optional: false, shape: Shape::List(Box::new(item)) }
    }

    fn fields(fact: &str, fields: BTreeMap<String, Self>) -> Self {
        Self { fact: fact.to_owned(), optional: false, shape: Shape::Fields(fields) }
    }

    /// What a path such as `letter.home` or `this` leads to.
    pub(super) fn find(&self, path: &str) -> Option<&Self> {
        if path == "this" {
            return Some(self);
        }
        path.split('.').try_fold(self, |field, name| match &field.shape {
            Shape::Fields(fields) => fields.get(name),
            _ => None,
        })
    }

    /// This scope with arguments beside its own names; none where one would hide another.
    pub(super) fn with(&self, arguments: Vec<(String, Self)>) -> Option<Self> {
        let Shape::Fields(mut fields) = self.shape.clone() else { return None };
        for (name, argument) in arguments {
            // Arguments can be named in the runs of a text, too, and come before their own names.
            if matches!(name.as_str(), "text" | "link") || fields.insert(name, argument).is_some() {
                return None;
            }
        }
        Some(Self { shape: Shape::Fields(fields), ..self.clone() })
    }
}
