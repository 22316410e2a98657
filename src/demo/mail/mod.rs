//! The second act: the provider writes e-mail to a mailbox on this machine, and what arrives is compared with what
//! should.
//!
//! The mailbox is a mail server behind TLS and a login; it refuses, greylists and is down for a while. Announcements
//! carry a link to the real pages for one-click unsubscribe, which are served here too.

mod addresses;
mod announcements;
mod deliveries;
mod error;
mod exhibit;
mod expected;
mod facts;
#[cfg(test)]
mod facts_tests;
mod notices;
mod outage;
mod people;
mod recoveries;
mod report;
mod scene;
mod script;
mod site;
mod stage;

pub use self::error::MailSetupError;
pub use self::expected::Kind;
pub use self::report::{MailLine, MailReport};
pub(super) use self::script::perform;
pub(super) use self::stage::MailStage;
