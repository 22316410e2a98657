//! Why the second act could not be set up.

use crate::content::TemplateError;
use crate::links::{NoLinkKeys, PagesError};
use crate::mail::AddressError;
use crate::mail::smtp::{RelayError, SmtpSetupError};
use crate::outbound::TlsSetupError;

/// The mail channels could not be made.
#[derive(Debug, thiserror::Error)]
pub enum MailSetupError {
    /// The sender's address.
    #[error("the sender's address")]
    Sender(#[from] AddressError),
    /// The pages that e-mails link.
    #[error("the pages that e-mails link")]
    Pages(#[from] PagesError),
    /// The keys of links.
    #[error(transparent)]
    LinkKeys(#[from] NoLinkKeys),
    /// A template.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// The mailbox's address.
    #[error("the mailbox's address")]
    Relay(#[from] RelayError),
    /// The way to the mailbox.
    #[error(transparent)]
    Smtp(#[from] SmtpSetupError),
    /// What a mail client trusts.
    #[error("a mail client's TLS")]
    Tls(#[from] TlsSetupError),
}
