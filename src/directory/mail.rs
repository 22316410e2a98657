//! What the e-mail channels ask for.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

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
}

/// Who a recovery's link goes to, and how long it works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecoveryRecipient {
    /// Who.
    pub to: LinkRecipient,
    /// When the link ends.
    pub expires_at: DateTime<Utc>,
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
    /// When what it says happened.
    pub at: DateTime<Utc>,
    /// What it says.
    pub notice: Notice,
    /// Each address once; none: no e-mail.
    pub addressees: Vec<Addressee>,
}

/// What was done to secure an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SecuringStep {
    /// Every session was ended.
    SessionsEnded,
    /// Recoveries under way were cancelled.
    RecoveriesCancelled,
    /// Passkeys were removed.
    PasskeysRemoved,
    /// Addresses were removed.
    AddressesRemoved,
}

/// What a notification says: the inbox and the e-mail tell the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// The account was secured.
    AccountSecured {
        /// What was done, in the order in which it is told.
        done: Vec<SecuringStep>,
    },
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
