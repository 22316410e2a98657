//! What the e-mail channels ask for.

use chrono::{DateTime, Utc};

use crate::identity::{AccountId, AddressId, RecoveryId};
use crate::links::TokenDigest;

/// Who a link goes to, as the tables have it at this moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkRecipient {
    /// The address.
    pub address: String,
    /// The account's handle.
    pub handle: String,
    /// SHA-256 of the link's token, which itself is stored nowhere.
    pub token_digest: TokenDigest,
    /// When the link ends to work; `None`: never by time.
    pub expires_at: Option<DateTime<Utc>>,
}

/// One address that a notification goes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Addressee {
    /// Which address.
    pub address_id: AddressId,
    /// The address itself, which the delivery copies.
    pub address: String,
}

/// A notification with those it goes to by e-mail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotificationMail {
    /// Whose inbox it is in.
    pub account: AccountId,
    /// The account's handle.
    pub handle: String,
    /// What it says.
    pub notice: Notice,
    /// Each address once; none: no e-mail.
    pub addressees: Vec<Addressee>,
}

/// What a notification says: the inbox and the e-mail tell the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// The account was secured: its sessions ended and its ways in were reset.
    AccountSecured,
    /// The account was recovered by a link.
    AccountRecovered {
        /// The recovery, while a passkey of the account can still undo it.
        undoable: Option<RecoveryId>,
    },
    /// This address was replaced by another as the account's address.
    AddressReplaced,
    /// This address was removed from the account.
    AddressRemoved,
    /// An address was added to the account.
    AddressAdded,
    /// A passkey was added.
    PasskeyAdded {
        /// As its owner named it.
        name: String,
    },
    /// A passkey was removed.
    PasskeyRemoved {
        /// As its owner named it.
        name: String,
    },
    /// Somebody signed in on a device that was not seen before.
    NewSignIn {
        /// As the host tells devices apart: "Firefox on Debian".
        device: String,
    },
    /// Something the account's owner should look at.
    Alert {
        /// In a few words.
        title: String,
        /// In sentences.
        text: String,
    },
}

/// An announcement as it is for one recipient, as the tables have it at this moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnnouncementMail {
    /// The recipient's primary verified address.
    pub address: String,
    /// The recipient's handle.
    pub handle: String,
    /// The announcement's subject.
    pub subject: String,
    /// Its text, plain.
    pub text: String,
    /// Goes also to those who opted out, and carries no unsubscribe link.
    pub essential: bool,
    /// The notification in the recipient's inbox.
    pub notification: crate::identity::NotificationId,
}
