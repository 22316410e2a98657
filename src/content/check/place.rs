//! Where in an HTML page something stands.

/// Where the next thing that is said stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// Between tags.
    Text,
    /// All of the value of an `href`.
    Target,
    /// Just after the value of an `href`, which is to end here.
    AfterTarget,
    /// Elsewhere in a tag, or in a style or a script.
    Elsewhere,
}

/// Reads a page from its beginning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reader {
    pub(super) place: Place,
    in_style: bool,
    in_tag: bool,
}

impl Reader {
    pub(super) fn new() -> Self {
        Self { place: Place::Text, in_style: false, in_tag: false }
    }

    /// Reads on. False where a value that should end does not.
    pub(super) fn read(&mut self, raw: &str) -> bool {
        let ends = self.place != Place::AfterTarget || raw.starts_with('"');
        self.in_style = match (raw.rfind("<style").max(raw.rfind("<script")), raw.rfind("</style")) {
            (None, None) => self.in_style,
            (begin, end) => begin > end,
        };
        self.in_tag = match (raw.rfind('<'), raw.rfind('>')) {
            (None, None) => self.in_tag,
            (begin, end) => begin > end,
        };
        self.place = match (self.in_style, self.in_tag) {
            (false, false) => Place::Text,
            (false, true) if raw.ends_with(" href=\"") => Place::Target,
            _ => Place::Elsewhere,
        };
        ends
    }

    /// Something was said here.
    pub(super) fn said(&mut self) {
        if self.place == Place::Target {
            self.place = Place::AfterTarget;
        }
    }
}
