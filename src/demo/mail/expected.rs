//! What should become of each message, noted by the scene that causes it.

use std::collections::BTreeMap;
use std::fmt;

use super::people::Person;
use crate::identity::AccountId;

/// What a message is: a line of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A link that verifies an address.
    VerificationLink,
    /// A link that recovers an account.
    RecoveryLink,
    /// That an account was recovered.
    AccountRecovered,
    /// That an address was added.
    AddressAdded,
    /// That an address was replaced, to the old one.
    AddressReplaced,
    /// That a passkey was added.
    PasskeyAdded,
    /// That somebody signed in from a new device.
    NewSignIn,
    /// An alert.
    Alert,
    /// The first announcement.
    Announcement,
    /// A second one, after somebody opted out.
    NextAnnouncement,
    /// One that goes also to those who opted out.
    EssentialAnnouncement,
    /// What the demo never causes.
    Other,
}

impl Kind {
    pub(super) const ALL: [Self; 12] = [
        Self::VerificationLink,
        Self::RecoveryLink,
        Self::AccountRecovered,
        Self::AddressAdded,
        Self::AddressReplaced,
        Self::PasskeyAdded,
        Self::NewSignIn,
        Self::Alert,
        Self::Announcement,
        Self::NextAnnouncement,
        Self::EssentialAnnouncement,
        Self::Other,
    ];

    /// Whether the message must carry a one-click unsubscribe link.
    pub(super) const fn is_subscribed_to(self) -> bool {
        matches!(self, Self::Announcement | Self::NextAnnouncement)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::VerificationLink => "verification link",
            Self::RecoveryLink => "recovery link",
            Self::AccountRecovered => "account recovered",
            Self::AddressAdded => "address added",
            Self::AddressReplaced => "address replaced",
            Self::PasskeyAdded => "passkey added",
            Self::NewSignIn => "new sign-in",
            Self::Alert => "alert",
            Self::Announcement => "announcement",
            Self::NextAnnouncement => "next announcement",
            Self::EssentialAnnouncement => "essential announcement",
            Self::Other => "anything else",
        })
    }
}

/// Why a message must not arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Why {
    AddressRemoved,
    AddressReplaced,
    AlreadyVerified,
    RecoveryCancelled,
    RolledBack,
    Refused(u16),
    OptedOut,
    NoAddress,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AddressRemoved => f.write_str("removed"),
            Self::AddressReplaced => f.write_str("replaced"),
            Self::AlreadyVerified => f.write_str("verified already"),
            Self::RecoveryCancelled => f.write_str("cancelled"),
            Self::RolledBack => f.write_str("rolled back"),
            Self::Refused(code) => write!(f, "refused: {code}"),
            Self::OptedOut => f.write_str("opted out"),
            Self::NoAddress => f.write_str("without address"),
        }
    }
}

/// What became of a delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fate {
    /// It succeeded, and the mailbox has it once, at this address.
    Arrived(String),
    /// It succeeded, and nothing was sent.
    Unsent,
    /// It failed with this reason, and nothing arrived.
    Failed(String),
    /// Anything else, in words.
    Otherwise(String),
}

impl fmt::Display for Fate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Arrived(address) => write!(f, "arrived at {address}"),
            Self::Unsent => f.write_str("succeeded unsent"),
            Self::Failed(reason) => write!(f, "failed: {reason}"),
            Self::Otherwise(words) => f.write_str(words),
        }
    }
}

/// A delivery that there should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ExpectedDelivery {
    pub(super) kind: Kind,
    pub(super) account: AccountId,
    pub(super) fate: Fate,
    /// Attempts that it takes at least.
    pub(super) attempts: u32,
}

/// Everything that should be, and nothing else should.
#[derive(Debug, Clone, Default)]
pub(super) struct Expected {
    pub(super) deliveries: Vec<ExpectedDelivery>,
    /// How many messages of a kind must not arrive, by the reason.
    pub(super) missing: BTreeMap<(Kind, Why), usize>,
}

impl Expected {
    /// It arrives at `address`.
    pub(super) fn arrives(&mut self, kind: Kind, person: &Person, address: impl Into<String>) {
        self.arrives_after(1, kind, person, address);
    }

    /// It arrives at `address`, and not with the first attempt.
    pub(super) fn arrives_late(&mut self, kind: Kind, person: &Person, address: impl Into<String>) {
        self.arrives_after(2, kind, person, address);
    }

    fn arrives_after(&mut self, attempts: u32, kind: Kind, person: &Person, address: impl Into<String>) {
        let fate = Fate::Arrived(address.into());
        self.deliveries.push(ExpectedDelivery { kind, account: person.account, fate, attempts });
    }

    /// It was recorded and tried while the relay was down, and is not sent afterwards.
    pub(super) fn unsent(&mut self, kind: Kind, person: &Person, why: Why) {
        self.deliveries.push(ExpectedDelivery { kind, account: person.account, fate: Fate::Unsent, attempts: 2 });
        self.never(kind, why, 1);
    }

    /// The relay refuses it for good.
    pub(super) fn refused(&mut self, kind: Kind, person: &Person, code: u16) {
        let fate = Fate::Failed(code.to_string());
        self.deliveries.push(ExpectedDelivery { kind, account: person.account, fate, attempts: 1 });
        self.never(kind, Why::Refused(code), 1);
    }

    /// There is not even a delivery.
    pub(super) fn never(&mut self, kind: Kind, why: Why, number: usize) {
        if number > 0 {
            *self.missing.entry((kind, why)).or_default() += number;
        }
    }

    /// How many of this kind should arrive.
    pub(super) fn arrivals(&self, kind: Kind) -> usize {
        let arrives = |one: &&ExpectedDelivery| one.kind == kind && matches!(one.fate, Fate::Arrived(_));
        self.deliveries.iter().filter(arrives).count()
    }
}
