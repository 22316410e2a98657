//! The "relaxed" canonical forms of a message, which bear what relays do to white space (RFC 6376 3.4.2 and 3.4.4).

/// Header fields as they stand in a message, each with its line ends.
pub(super) struct Field<'a> {
    name: &'a [u8],
    value: &'a [u8],
}

/// Parts a message at the empty line after its header: fields and body.
pub(super) fn parts(message: &[u8]) -> (Vec<Field<'_>>, &[u8]) {
    let end = message.windows(4).position(|window| window == b"\r\n\r\n").map_or(message.len(), |end| end + 2);
    let (header, body) = message.split_at(end);
    (fields(header), body.get(2..).unwrap_or_default())
}

fn fields(header: &[u8]) -> Vec<Field<'_>> {
    let mut fields = Vec::new();
    let mut rest = header;
    while !rest.is_empty() {
        let (field, after) = rest.split_at(end_of_field(rest));
        if let Some(colon) = field.iter().position(|byte| *byte == b':') {
            fields.push(Field { name: &field[..colon], value: &field[colon + 1..] });
        }
        rest = after;
    }
    fields
}

/// Where the first field ends: after a line end that no white space follows.
fn end_of_field(header: &[u8]) -> usize {
    let ends = header.windows(2).enumerate().filter(|(_, pair)| pair == b"\r\n").map(|(at, _)| at + 2);
    ends.into_iter().find(|end| !matches!(header.get(*end), Some(b' ' | b'\t'))).unwrap_or(header.len())
}

impl Field<'_> {
    pub(super) fn is(&self, name: &str) -> bool {
        self.name.trim_ascii_end().eq_ignore_ascii_case(name.as_bytes())
    }

    /// Its name in lower case, a colon, its value unfolded and with single spaces, a line end.
    pub(super) fn canonical(&self) -> Vec<u8> {
        let mut canonical = self.name.trim_ascii_end().to_ascii_lowercase();
        canonical.push(b':');
        let unfolded: Vec<u8> = self.value.iter().copied().filter(|byte| !b"\r\n".contains(byte)).collect();
        canonical.extend(single_spaced(&unfolded).trim_ascii_start());
        canonical.extend(b"\r\n");
        canonical
    }
}

/// Lines with single spaces and none at their end; no empty lines at the end.
pub(super) fn body(body: &[u8]) -> Vec<u8> {
    let mut canonical = Vec::with_capacity(body.len());
    let mut empty_lines = 0;
    let mut rest = body;
    while !rest.is_empty() {
        let end = rest.windows(2).position(|pair| pair == b"\r\n");
        let (line, after) = rest.split_at(end.unwrap_or(rest.len()));
        rest = after.get(2..).unwrap_or_default();
        let line = single_spaced(line);
        if line.is_empty() {
            empty_lines += 1;
            continue;
        }
        canonical.extend(std::iter::repeat_n(*b"\r\n", empty_lines).flatten());
        canonical.extend(&line);
        canonical.extend(b"\r\n");
        empty_lines = 0;
    }
    canonical
}

/// Runs of white space as one space each, and none at the end.
fn single_spaced(line: &[u8]) -> Vec<u8> {
    let mut spaced = Vec::with_capacity(line.len());
    for byte in line {
        match byte {
            b' ' | b'\t' if spaced.last() == Some(&b' ') => {}
            b' ' | b'\t' => spaced.push(b' '),
            _ => spaced.push(*byte),
        }
    }
    if spaced.last() == Some(&b' ') {
        spaced.pop();
    }
    spaced
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn example_of_rfc_6376_3_4_5() {
        let (fields, rest) = parts(b"A: X\r\nB : Y\t\r\n\tZ  \r\n\r\n C \r\nD \t E\r\n\r\n\r\n");
        let header: Vec<u8> = fields.iter().flat_map(Field::canonical).collect();
        assert_eq!(header, b"a:X\r\nb:Y Z\r\n");
        assert_eq!(body(rest), b" C\r\nD E\r\n");
        assert!(fields[1].is("b") && fields[1].is("B") && !fields[1].is("a"));
    }

    #[test]
    fn bodies_end_in_one_line_end_or_are_empty() {
        for (given, canonical) in [
            (&b""[..], &b""[..]),
            (b"\r\n", b""),
            (b" \t\r\n\r\n", b""),
            (b"a", b"a\r\n"),
            (b"a\r\n", b"a\r\n"),
            (b"a\r\n\r\n \r\n", b"a\r\n"),
            (b"\r\na\r\n\t\r\nb  ", b"\r\na\r\n\r\nb\r\n"),
        ] {
            assert_eq!(body(given), canonical, "{given:?}");
        }
    }

    #[test]
    fn whatever_is_no_message_is_taken_apart_without_a_panic() {
        for given in [&b""[..], b"\r\n\r\n", b":", b"a", b"a\r\n", b" a: b\r\n", b"a: b\r\n\r\n"] {
            let (fields, rest) = parts(given);
            assert!(fields.len() <= 1 && rest.is_empty(), "{given:?}");
        }
    }
}
