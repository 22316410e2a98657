//! Replies as they come off the wire (RFC 5321 4.2), byte by byte.

use postrider_actors::ReplyCode;

/// Bytes of one reply at most, line ends included; a longer one is malformed.
pub const MAX_REPLY_BYTES: usize = 128 * 1024;

/// Lines of one reply at most; more are malformed.
pub const MAX_REPLY_LINES: usize = 100;

/// Bytes of a line that are kept (RFC 5321 4.5.3.1.5); the rest of it is read and dropped.
const KEPT_OF_LINE: usize = 510;

/// Bytes that are kept of all lines together: what mail-send takes of one reply, the last line apart.
const KEPT_OF_REPLY: usize = 3 * 1024;

/// Codes whose text is kept, as a client must read it: capabilities, and the challenge of an AUTH.
const TEXT_MATTERS: [u16; 2] = [250, 334];

/// Not a reply: no three digits from 2 to 5, codes that differ between lines, or over a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Malformed;

/// A whole reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reply {
    pub(super) code: ReplyCode,
    /// The reply as mail-send reads it: CRLF after each line, a space after the last code, printable ASCII alone. Of
    /// a code whose text means nothing to a client, nothing but the code is left.
    pub(super) wire: Vec<u8>,
}

/// Reads one reply. Takes a bare LF as the end of a line, and any bytes as text.
#[derive(Default)]
pub(super) struct ReplyReader {
    code: Option<u16>,
    wire: Vec<u8>,
    line: Line,
    lines: usize,
    bytes: usize,
}

#[derive(Default)]
struct Line {
    head: [u8; 4],
    length: usize,
    text: Vec<u8>,
}

impl ReplyReader {
    /// Takes one byte more; a reply once its last line has ended.
    pub(super) fn push(&mut self, byte: u8) -> Result<Option<Reply>, Malformed> {
        self.bytes += 1;
        if self.bytes > MAX_REPLY_BYTES {
            return Err(Malformed);
        }
        if byte == b'\n' {
            return self.end_line();
        }
        self.line.push(byte)?;
        Ok(None)
    }

    fn end_line(&mut self) -> Result<Option<Reply>, Malformed> {
        let mut line = std::mem::take(&mut self.line);
        line.text.pop_if(|byte| *byte == b'\r');
        let (code, is_last) = line.code()?;
        self.lines += 1;
        if *self.code.get_or_insert(code) != code || self.lines > MAX_REPLY_LINES {
            return Err(Malformed);
        }
        self.keep(code, is_last, &line.text);
        if !is_last {
            return Ok(None);
        }
        let reply = Reply { code: ReplyCode::new(code).ok_or(Malformed)?, wire: std::mem::take(&mut self.wire) };
        *self = Self::default();
        Ok(Some(reply))
    }

    fn keep(&mut self, code: u16, is_last: bool, text: &[u8]) {
        let text = if TEXT_MATTERS.contains(&code) { text } else { &[] };
        let is_kept = is_last || (!text.is_empty() && self.wire.len() + text.len() <= KEPT_OF_REPLY);
        if is_kept {
            self.wire.extend_from_slice(code.to_string().as_bytes());
            self.wire.push(if is_last { b' ' } else { b'-' });
            self.wire.extend(text.iter().map(|byte| if matches!(byte, b' '..=b'~') { *byte } else { b'?' }));
            self.wire.extend_from_slice(b"\r\n");
        }
    }
}

impl Line {
    fn push(&mut self, byte: u8) -> Result<(), Malformed> {
        let fits = match self.length {
            0 => matches!(byte, b'2'..=b'5'),
            1 | 2 => byte.is_ascii_digit(),
            3 => matches!(byte, b' ' | b'-' | b'\r'),
            _ => self.head[3] != b'\r', // a code, CR, and no LF
        };
        if !fits {
            return Err(Malformed);
        }
        match self.head.get_mut(self.length) {
            Some(place) => *place = byte,
            None if self.text.len() < KEPT_OF_LINE => self.text.push(byte),
            None => {}
        }
        self.length += 1;
        Ok(())
    }

    /// The code, and whether the reply ends here.
    fn code(&self) -> Result<(u16, bool), Malformed> {
        let [hundreds, tens, units, separator] = self.head;
        if self.length < 3 {
            return Err(Malformed);
        }
        let code = [hundreds, tens, units].iter().fold(0, |code, digit| code * 10 + u16::from(digit - b'0'));
        Ok((code, separator != b'-'))
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use smtp_proto::EhloResponse;
    use smtp_proto::response::parser::ResponseReceiver;

    use super::*;

    fn read(bytes: &[u8]) -> Result<Option<Reply>, Malformed> {
        let mut reader = ReplyReader::default();
        for (index, byte) in bytes.iter().enumerate() {
            if let Some(reply) = reader.push(*byte)? {
                assert_eq!(index, bytes.len() - 1, "ended before the end");
                return Ok(Some(reply));
            }
        }
        Ok(None)
    }

    fn wire(bytes: &[u8]) -> Option<String> {
        read(bytes).ok().flatten().map(|reply| String::from_utf8_lossy(&reply.wire).into_owned())
    }

    #[test]
    fn c17_a_reply_ends_at_a_code_without_hyphen_and_keeps_one_code() {
        assert_eq!(wire(b"250-a\r\n250 b\r\n").as_deref(), Some("250-a\r\n250 b\r\n"));
        assert_eq!(wire(b"220-mx ESMTP\r\n220-no spam\r\n220 ok\r\n").as_deref(), Some("220 \r\n"));
        assert_eq!(read(b"220-mx\r\n521 5.7.1 blocked\r\n"), Err(Malformed));
        assert_eq!(read(b"250-a\r\n"), Ok(None));
    }

    #[test]
    fn c17_a_reply_is_bounded_in_lines_and_bytes() {
        let lines = |count: usize| [b"550-x\r\n".repeat(count - 1), b"550 x\r\n".to_vec()].concat();
        assert!(read(&lines(MAX_REPLY_LINES)).is_ok_and(|reply| reply.is_some()));
        assert_eq!(read(&lines(MAX_REPLY_LINES + 1)), Err(Malformed));
        let line = |length: usize| [b"550 ".to_vec(), vec![b'x'; length], b"\r\n".to_vec()].concat();
        assert_eq!(wire(&line(100_000)).as_deref(), Some("550 \r\n"));
        assert_eq!(read(&line(1_000_000)), Err(Malformed));
        let kept = wire(&[b"250 ".to_vec(), vec![b'x'; 100_000], b"\r\n".to_vec()].concat());
        assert_eq!(kept.map(|kept| kept.len()), Some("250 \r\n".len() + KEPT_OF_LINE));
        let many =
            [b"250-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\r\n".repeat(99), b"250 y\r\n".to_vec()];
        assert!(wire(&many.concat()).is_some_and(|kept| kept.len() < 4096 && kept.ends_with("250 y\r\n")));
    }

    #[test]
    fn c18_a_bare_code_is_a_reply_and_all_else_that_is_odd_is_malformed() {
        for (bytes, kept) in [
            (&b"250\r\n"[..], "250 \r\n"),
            (b"250\n", "250 \r\n"),
            (b"334\r\n", "334 \r\n"),
            (b"250 \xff\xfe\r\n", "250 ??\r\n"),
            (b"250 a\rb\r\n", "250 a?b\r\n"),
            (b"550 no\n", "550 \r\n"),
        ] {
            assert_eq!(wire(bytes).as_deref(), Some(kept), "{bytes:?}");
        }
        for bytes in [
            &b"25\r\n"[..],
            b"\r\n",
            b"\n",
            b"2500 x\r\n",
            b" 550 no\r\n",
            b"199 x\r\n",
            b"000 x\r\n",
            b"600 x\r\n",
            b"HTTP/1.1 400 Bad Request\r\n",
            b"SSH-2.0-x\r\n",
            b"250\rx\r\n",
            b"250\r\r\n",
            b"250_x\r\n",
            "\u{ff15}\u{ff15}\u{ff10} no\r\n".as_bytes(),
        ] {
            assert_eq!(read(bytes), Err(Malformed), "{bytes:?}");
        }
    }

    #[test]
    fn no_text_of_a_refusal_is_kept() {
        let refusal = b"550-5.1.1 <user@rcpt.example>: no such user\r\n550 \x1b[31mred\x07\r\n";
        assert_eq!(wire(refusal).as_deref(), Some("550 \r\n"));
    }

    /// A line's text: any bytes, or what looks like an enhanced status code (RFC 3463 2).
    fn text() -> impl Strategy<Value = Vec<u8>> {
        let any_bytes = vec(any::<u8>().prop_filter("a line's end", |byte| *byte != b'\n'), 0..100);
        prop_oneof![any_bytes, vec(prop_oneof![b'0'..=b'9', Just(b'.')], 0..12), Just(vec![b'x'; 2000])]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        /// Whatever a relay's text is, what is handed on is one whole reply to mail-send, with the same code.
        #[test]
        fn whatever_comes_mail_send_reads_it_as_one_reply(
            code in prop_oneof![Just(250u16), Just(334), 200u16..600],
            others in vec(text(), 0..20),
            last in text(),
        ) {
            let line = |separator: &str, text: &[u8]| [code.to_string().as_bytes(), separator.as_bytes(), text, b"\r\n"].concat();
            let mut said: Vec<u8> = others.iter().flat_map(|text| line("-", text)).collect();
            said.extend(line(" ", &last));
            let reply = read(&said).ok().flatten();
            prop_assert!(reply.is_some(), "{:?}", said);
            let wire = reply.map(|reply| reply.wire).unwrap_or_default();
            let mut rest = wire.iter();
            let read_again = ResponseReceiver::default().parse(&mut rest).map(|response| response.code);
            prop_assert_eq!(read_again.ok(), Some(code));
            prop_assert_eq!(rest.len(), 0);
            if code == 250 {
                let mut rest = wire.iter();
                prop_assert!(EhloResponse::parse(&mut rest).is_ok());
                prop_assert_eq!(rest.len(), 0);
            }
        }

        #[test]
        fn no_bytes_make_the_reader_panic_or_keep_more_than_its_bounds(bytes in vec(any::<u8>(), 0..600)) {
            let mut reader = ReplyReader::default();
            for byte in bytes {
                match reader.push(byte) {
                    Ok(Some(reply)) => prop_assert!(reply.wire.len() < 4096),
                    Ok(None) => {}
                    Err(Malformed) => break,
                }
            }
        }
    }
}
