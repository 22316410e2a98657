//! What a row of the channel holds.

use serde::{Deserialize, Serialize};

use crate::content::Content;
use crate::identity::{AccountId, AddressId, NotificationId, RecoveryId};

/// The payload: whom it is for and what it is. It holds no link and no token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EmailPayload {
    /// The recipient.
    pub account: AccountId,
    /// What is sent.
    pub message: EmailMessage,
}

/// What is sent.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum EmailMessage {
    /// A link that verifies an address. Address and handle are read when it is sent.
    VerificationLink {
        /// Which address.
        address: AddressId,
    },
    /// A link that recovers an account. Address and handle are read when it is sent.
    RecoveryLink {
        /// Which recovery.
        recovery: RecoveryId,
        /// The primary address when it was requested.
        address: AddressId,
    },
    /// What the inbox says. Everything is copied from the event's transaction; later changes alter nothing.
    Notification {
        /// Which notification.
        notification: NotificationId,
        /// Where it goes: with `notice` the channel's only personal data, which goes with the row.
        address: String,
        /// What it says.
        notice: Box<Content>,
    },
}

/// Shows ids alone.
impl std::fmt::Debug for EmailMessage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::VerificationLink { address } => write!(f, "VerificationLink({address})"),
            Self::RecoveryLink { recovery, .. } => write!(f, "RecoveryLink({recovery})"),
            Self::Notification { notification, .. } => write!(f, "Notification({notification})"),
        }
    }
}
