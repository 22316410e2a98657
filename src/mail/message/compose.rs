//! From a draft to a message.

use chrono::{DateTime, Datelike, Utc};

use super::{ComposeError, Draft, Mailbox, Message, body, header_text, unsubscribe};

/// The longest line, without its CRLF (RFC 5322 2.1.1).
const MAX_LINE: usize = 998;

/// Builds the message of a draft: a text and an HTML part, each header once.
///
/// It is the last guard before the wire: whatever could end a header and start another is refused here, even where
/// the caller has refused it before.
///
/// # Errors
/// See [`ComposeError`].
pub fn compose(draft: &Draft<'_>) -> Result<Message, ComposeError> {
    let Draft { from, reply_to, to, .. } = *draft;
    let mut header = Header::default();
    header.add("From", &mailbox(from, "From")?)?;
    if let Some(reply_to) = reply_to {
        header.add("Reply-To", &mailbox(reply_to, "Reply-To")?)?;
    }
    header.add("To", &format!("<{to}>"))?;
    header.add("Subject", &header_text::unstructured(draft.subject, "Subject")?)?;
    header.add("Date", &date(draft.date)?)?;
    header.add("Message-ID", &format!("<{}@{}>", draft.delivery, from.address.domain()))?;
    // So that no out-of-office note comes back (RFC 3834 5).
    header.add("Auto-Submitted", "auto-generated")?;
    if let Some(uri) = draft.unsubscribe {
        header.add("List-Unsubscribe", &format!("<{}>", unsubscribe::checked(uri)?))?;
        header.add("List-Unsubscribe-Post", "List-Unsubscribe=One-Click")?;
    }
    header.add("MIME-Version", "1.0")?;
    let Header(mut bytes) = header;
    body::write(draft.delivery, draft.text, draft.html, &mut bytes);
    let addresses = [Some(&from.address), Some(to), reply_to.map(|mailbox| &mailbox.address)];
    let needs_smtputf8 = addresses.into_iter().flatten().any(|address| address.needs_smtputf8());
    Ok(Message { from: from.address.clone(), to: to.clone(), needs_smtputf8, bytes })
}

/// Header lines, each ended by CRLF.
#[derive(Default)]
struct Header(Vec<u8>);

impl Header {
    /// Adds one whose value is folded already.
    fn add(&mut self, name: &str, value: &str) -> Result<(), ComposeError> {
        let line = format!("{name}: {value}");
        if line.split("\r\n").any(|line| line.len() > MAX_LINE) {
            return Err(ComposeError::LineTooLong);
        }
        self.0.extend_from_slice(line.as_bytes());
        self.0.extend_from_slice(b"\r\n");
        Ok(())
    }
}

fn mailbox(mailbox: &Mailbox, name: &str) -> Result<String, ComposeError> {
    header_text::mailbox(mailbox.name.as_deref(), &mailbox.address.to_string(), name)
}

/// English names and a numeric zone, whatever the locale (RFC 5322 3.3).
fn date(date: DateTime<Utc>) -> Result<String, ComposeError> {
    if !(1900..=9999).contains(&date.year()) {
        return Err(ComposeError::Date);
    }
    Ok(date.format("%a, %d %b %Y %H:%M:%S +0000").to_string())
}
