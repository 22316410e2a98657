//! The facts of the domain that channels make deliveries of.

use serde::Serialize;

use super::{AccountId, AddressId, AnnouncementId, NotificationId, RecoveryId};
use crate::event::Event;

/// An address is to be verified by a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct VerificationRequested {
    /// Whose address.
    pub account: AccountId,
    /// Which.
    pub address: AddressId,
}

impl Event for VerificationRequested {
    const KIND: &'static str = "verification_requested";
}

/// An account is to be recovered by a link to its primary address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct RecoveryRequested {
    /// Whose.
    pub account: AccountId,
    /// Which recovery.
    pub recovery: RecoveryId,
    /// The account's primary address.
    pub address: AddressId,
}

impl Event for RecoveryRequested {
    const KIND: &'static str = "recovery_requested";
}

/// A notification was written to an account's inbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Notified {
    /// Whose inbox.
    pub account: AccountId,
    /// Which notification.
    pub notification: NotificationId,
}

impl Event for Notified {
    const KIND: &'static str = "notified";
}

/// An announcement was written to its recipients' inboxes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct AnnouncementSent {
    /// Which.
    pub announcement: AnnouncementId,
}

impl Event for AnnouncementSent {
    const KIND: &'static str = "announcement_sent";
}
