//! Links that are secrets: who has one may act for the account.

use chrono::{DateTime, Utc};

use super::facts::{Facts, Stated, sample_time};

/// Asks whether an address belongs to an account.
#[derive(Clone, PartialEq, Eq)]
pub struct VerificationLink {
    /// The account's handle.
    pub handle: String,
    /// The page that confirms the address.
    pub link: String,
}

/// Lets someone recover an account.
#[derive(Clone, PartialEq, Eq)]
pub struct RecoveryLink {
    /// The account's handle.
    pub handle: String,
    /// The page that goes on with the recovery.
    pub link: String,
    /// When the link ends. A time and no duration, so that every attempt says the same.
    pub expires_at: DateTime<Utc>,
}

impl Stated for VerificationLink {
    fn facts(&self) -> Facts {
        let Self { handle, link } = self;
        Facts::default().word("handle", handle).link("link", link)
    }

    fn samples() -> Vec<Self> {
        vec![Self { handle: "ada".into(), link: "https://id.example.com/verify#9sYpJ0Q2xk7mTzVbLr4WfA".into() }]
    }
}

impl Stated for RecoveryLink {
    fn facts(&self) -> Facts {
        let Self { handle, link, expires_at } = self;
        Facts::default().word("handle", handle).link("link", link).time("expires_at", *expires_at)
    }

    fn samples() -> Vec<Self> {
        vec![Self {
            handle: "ada".into(),
            link: "https://id.example.com/recover#Qk3nW8uYc5dHs1ZtGx6PvB".into(),
            expires_at: sample_time(),
        }]
    }
}
