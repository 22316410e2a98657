//! E-mail: addresses, messages as they stand on the wire, and the relays that take them.

mod address;
mod message;
pub mod smtp;

pub use self::address::{AddressError, EmailAddress};
pub use self::message::{ComposeError, Draft, Mailbox, Message, compose};
