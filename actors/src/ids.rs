//! Newtypes for everything that is told apart by more than its bytes.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use uuid::Uuid;

/// A text that is not the id it was taken for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a {what}: expected {expected}")]
pub struct MalformedId {
    /// The text as given, cut to 80 characters.
    pub text: String,
    /// Which id was asked for.
    pub what: &'static str,
    /// The form that was expected.
    pub expected: &'static str,
}

impl MalformedId {
    fn new(text: &str, what: &'static str, expected: &'static str) -> Self {
        Self { text: text.chars().take(80).collect(), what, expected }
    }
}

macro_rules! uuid_newtype {
    ($(#[$doc:meta])* $name:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(Uuid);

        impl $name {
            /// Takes a UUID for what the caller knows it to be.
            pub const fn from_uuid(uuid: Uuid) -> Self {
                Self(uuid)
            }

            /// The UUID itself, for storage and for the wire.
            pub const fn as_uuid(self) -> Uuid {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0)
            }
        }

        impl FromStr for $name {
            type Err = MalformedId;

            fn from_str(text: &str) -> Result<Self, MalformedId> {
                Uuid::try_parse(text)
                    .map(Self)
                    .map_err(|_| MalformedId::new(text, $what, "a UUID such as 0190b5a4-8c7e-7c3a-9d52-3f1e6a7b8c9d"))
            }
        }
    };
}

uuid_newtype!(
    /// Identifies one delivery: a UUIDv7 that every attempt carries and that receivers deduplicate on.
    DeliveryId,
    "delivery id"
);

uuid_newtype!(
    /// Written anew by every claim; a write that carries an older one changes nothing.
    ClaimToken,
    "claim token"
);

impl DeliveryId {
    /// A fresh id: UUIDv7 (RFC 9562 5.7), so that ids ascend roughly with time. Order is never decided by it.
    pub fn generate() -> Self {
        Self(Uuid::now_v7())
    }
}

impl ClaimToken {
    /// A fresh token: UUIDv4 (RFC 9562 5.4), 122 random bits.
    pub fn generate() -> Self {
        Self(Uuid::new_v4())
    }
}

/// The name of a channel: 1 to 63 of `a-z`, `0-9` and `_`, starting with a letter.
///
/// It is a label of metrics and part of SQL rows, so its form is closed.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ChannelName(Arc<str>);

impl ChannelName {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ChannelName {
    type Err = MalformedId;

    fn from_str(text: &str) -> Result<Self, MalformedId> {
        let starts_with_letter = text.starts_with(|first: char| first.is_ascii_lowercase());
        let only_allowed = text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
        if starts_with_letter && only_allowed && text.len() <= 63 {
            Ok(Self(text.into()))
        } else {
            Err(MalformedId::new(text, "channel name", "1 to 63 of a-z, 0-9 and _, starting with a letter"))
        }
    }
}

impl fmt::Display for ChannelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ChannelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ChannelName({})", self.0)
    }
}
