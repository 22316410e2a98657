//! The body: a text and an HTML part, of which a mail client shows one (RFC 2046 5.1.4).

use encodify::base64::MIME;
use encodify::qp;
use mail_send::mail_builder::headers::content_type::ContentType;
use mail_send::mail_builder::mime::MimePart;
use postrider_actors::DeliveryId;

/// Writes the body's own headers, an empty line and its parts, all in lines of at most 76 octets.
pub(super) fn write(delivery: DeliveryId, text: &str, html: &str, output: &mut Vec<u8>) {
    // Quoted-printable and base64 never hold `=_` (RFC 2045 6.7), and every part is in one of them: no part can hold
    // the boundary, whatever it says. It follows from the delivery, so that each attempt sends the same bytes.
    let boundary = format!("=_{delivery}");
    let content_type = ContentType::new("multipart/alternative").attribute("boundary", boundary);
    // The plainest first (RFC 2046 5.1.4).
    MimePart::new(content_type, vec![part("text/plain", text), part("text/html", html)]).write_part(output);
}

/// One part, encoded even where it is short plain ASCII, in whichever encoding is shorter.
fn part(content_type: &'static str, content: &str) -> MimePart<'static> {
    // The canonical form of text ends lines in CRLF (RFC 2046 4.1.1).
    let content = content.replace("\r\n", "\n").replace('\r', "\n").replace('\n', "\r\n");
    let (encoding, encoded) = match qp::BODY.encoded_len_within(&content, MIME.encoded_len(content.len())) {
        Some(_) => ("quoted-printable", qp::BODY.encode(&content)),
        None => ("base64", MIME.encode(&content)),
    };
    MimePart::new(content_type, encoded).transfer_encoding(encoding)
}
