//! E-mail: addresses, messages as they stand on the wire, and the relays that take them.

mod address;
mod dkim;
mod mailer;
mod message;
pub mod smtp;

pub use self::address::{AddressError, EmailAddress};
pub use self::dkim::{DkimError, DkimSigner};
pub use self::mailer::{Letter, Mailer};
pub use self::message::{ComposeError, Draft, Mailbox, Message, check_header_text, compose};

/// A control character, or what Unicode ends lines and paragraphs with: none may stand in an address or a header.
fn breaks_a_line(character: char) -> bool {
    character.is_control() || matches!(character, '\u{2028}' | '\u{2029}')
}
