//! A renderer, and contents made of anything.

use postrider::content::{Content, Letterhead, Rendered, Renderer};

pub const HOME: &str = "https://id.example.com/";

pub fn renderer() -> Renderer {
    Renderer::new(&Letterhead { service: "Example ID".into(), home: HOME.into() }).unwrap()
}

/// All samples with what they are rendered to.
pub fn rendered() -> Vec<(Content, Rendered)> {
    let renderer = renderer();
    Content::samples().into_iter().map(|content| (content.clone(), renderer.render(&content).unwrap())).collect()
}

/// Every http and https URL of a text, in order, without the point that ends a sentence.
pub fn urls(text: &str) -> Vec<&str> {
    let starts = text.match_indices("http").map(|(at, _)| &text[at..]);
    let starts = starts.filter(|rest| rest.starts_with("https://") || rest.starts_with("http://"));
    starts.filter_map(|rest| rest.split_whitespace().next()).map(|url| url.trim_end_matches('.')).collect()
}
