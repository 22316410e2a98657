//! A message's bytes, taken apart by the letter of RFC 5322 2.

use postrider::mail::Message;

/// A message in parts that borrow from it.
pub struct Wire<'a> {
    pub header: &'a [u8],
    pub body: &'a [u8],
}

pub fn wire(message: &Message) -> Wire<'_> {
    let bytes = message.bytes();
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n").expect("an empty line ends the header");
    Wire { header: &bytes[..end + 2], body: &bytes[end + 4..] }
}

/// Lines without their CRLF. What follows the last CRLF must be nothing.
pub fn lines(bytes: &[u8]) -> Vec<&[u8]> {
    let mut rest = bytes;
    let mut lines = Vec::new();
    while !rest.is_empty() {
        let end = rest.windows(2).position(|window| window == b"\r\n").expect("every line ends in CRLF");
        lines.push(&rest[..end]);
        rest = &rest[end + 2..];
    }
    lines
}

impl<'a> Wire<'a> {
    pub fn header_lines(&self) -> Vec<&'a str> {
        lines(self.header).into_iter().map(|line| std::str::from_utf8(line).unwrap()).collect()
    }

    /// Every field: its name and its value, unfolded (RFC 5322 2.2.3).
    pub fn fields(&self) -> Vec<(&'a str, String)> {
        let mut fields: Vec<(&str, String)> = Vec::new();
        for line in self.header_lines() {
            if line.starts_with([' ', '\t']) {
                fields.last_mut().expect("no header starts folded").1.push_str(line);
            } else {
                let (name, value) = line.split_once(": ").expect("a name and a value");
                fields.push((name, value.to_owned()));
            }
        }
        fields
    }

    pub fn names(&self) -> Vec<&'a str> {
        self.fields().into_iter().map(|(name, _)| name).collect()
    }

    pub fn values(&self, name: &str) -> Vec<String> {
        self.fields().into_iter().filter(|field| field.0.eq_ignore_ascii_case(name)).map(|field| field.1).collect()
    }

    /// The value of a header that stands there once.
    pub fn value(&self, name: &str) -> String {
        let [value] = <[String; 1]>::try_from(self.values(name)).unwrap_or_else(|all| panic!("{name}: {all:?}"));
        value
    }
}
