//! Whether texts can be read: the contrast of each with what is behind it (WCAG 2.2, 1.4.3), in light and dark mode.

use crate::page::{Element, Page};
use crate::support::rendered;

/// What normal text needs.
const ENOUGH: f64 = 4.5;

/// A rule of the page's style: its selector, property and value.
type Rule<'a> = (&'a str, &'a str, &'a str);

#[test]
fn every_text_has_contrast_enough_in_light_and_dark_mode() {
    for (content, rendered) in rendered() {
        let page = Page::parse(&rendered.html);
        let dark = dark_rules(&page.style);
        assert!(dark.len() > 5, "{dark:?}");
        let mut seen = 0;
        for (text, path) in page.texts.iter().filter(|(_, path)| is_visible(path)) {
            for (mode, rules) in [("light", &[] as &[Rule<'_>]), ("dark", &dark)] {
                let colour = effective(path, "color", rules).unwrap_or_else(|| panic!("{text} has no colour"));
                let behind = effective(path, "background-color", rules).expect("a background");
                let contrast = contrast(&colour, &behind);
                assert!(contrast >= ENOUGH, "{content:?}, {mode}: {text:?} is {colour} on {behind}: {contrast:.2}");
                assert!(
                    mode == "light" || luminance(&behind) < 0.05 || in_button(path),
                    "{text:?} is on {behind} in the dark"
                );
                seen += 1;
            }
        }
        assert!(seen >= 10, "{content:?}");
    }
}

#[test]
fn contrast_is_that_of_the_recommendation() {
    assert!((contrast("#000000", "#ffffff") - 21.0).abs() < 0.01);
    assert!((contrast("#777777", "#ffffff") - 4.48).abs() < 0.01);
}

fn is_visible(path: &[Element]) -> bool {
    let hidden = |element: &Element| element.name == "head" || style(element, "display").as_deref() == Some("none");
    !path.iter().any(hidden)
}

fn in_button(path: &[Element]) -> bool {
    path.iter().any(|element| classes(element).any(|class| class == "button"))
}

/// The value that holds at the innermost element: the nearest that says one. A rule that is important comes before what
/// an element says itself, and the more particular rule before the less, then the later before the earlier.
fn effective(path: &[Element], property: &str, rules: &[Rule<'_>]) -> Option<String> {
    (1..=path.len()).rev().find_map(|depth| {
        let path = &path[..depth];
        let matching = rules.iter().filter(|(selector, of, _)| *of == property && matches(selector, path));
        let (_, value) =
            matching.map(|(selector, _, value)| (particular(selector), *value)).max_by_key(|(p, _)| *p).unzip();
        value.map(str::to_owned).or_else(|| style(&path[depth - 1], property))
    })
}

fn matches(selector: &str, path: &[Element]) -> bool {
    let (innermost, outer) = path.split_last().expect("an element");
    let mut parts = selector.split(' ').rev();
    parts.next().is_some_and(|part| matches_one(part, innermost))
        && parts.all(|part| outer.iter().any(|element| matches_one(part, element)))
}

fn matches_one(part: &str, element: &Element) -> bool {
    let (name, class) = part.split_once('.').unwrap_or((part, ""));
    (name.is_empty() || name == element.name) && (class.is_empty() || classes(element).any(|own| own == class))
}

/// Classes, then names.
fn particular(selector: &str) -> (usize, usize) {
    let names = selector.split(' ').filter(|part| !part.starts_with('.')).count();
    (selector.matches('.').count(), names)
}

fn classes(element: &Element) -> impl Iterator<Item = &str> {
    element.attributes.get("class").map(String::as_str).unwrap_or_default().split(' ')
}

fn style(element: &Element, property: &str) -> Option<String> {
    let declarations = element.attributes.get("style")?.split(';').filter_map(|one| one.split_once(':'));
    declarations.filter(|(name, _)| *name == property).map(|(_, value)| value.to_owned()).next_back()
}

fn dark_rules(style: &str) -> Vec<Rule<'_>> {
    let (_, dark) = style.split_once("(prefers-color-scheme: dark) {").expect("a dark mode");
    let (dark, _) = dark.split_once("\n}").expect("its end");
    let blocks = dark.split('}').filter_map(|block| block.split_once('{'));
    let rules = blocks.flat_map(|(selectors, body)| {
        let declarations = body.split(';').filter_map(|one| one.split_once(':')).collect::<Vec<_>>();
        selectors.split(',').flat_map(move |selector| {
            declarations.clone().into_iter().map(move |(name, value)| {
                let value = value.strip_suffix("!important").expect("it comes before what elements say");
                (selector.trim(), name.trim(), value.trim())
            })
        })
    });
    rules.collect()
}

fn luminance(colour: &str) -> f64 {
    let channel = |at: usize| {
        let value = f64::from(u8::from_str_radix(&colour[at..at + 2], 16).expect("a colour")) / 255.0;
        if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
    };
    assert!(colour.len() == 7 && colour.starts_with('#'), "{colour}");
    0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5)
}

fn contrast(one: &str, other: &str) -> f64 {
    let (one, other) = (luminance(one), luminance(other));
    (one.max(other) + 0.05) / (one.min(other) + 0.05)
}
