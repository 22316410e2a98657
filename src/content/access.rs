//! Who has access to an account.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::facts::{Facts, Stated, sample_page, sample_time};
use crate::directory::SecuringStep;

/// An account was secured: goes to every verified address.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountSecured {
    /// The account's handle.
    pub handle: String,
    /// When.
    pub at: DateTime<Utc>,
    /// What was done, in the order in which it is told.
    pub done: Vec<SecuringStep>,
    /// The notification's page.
    pub page: String,
}

/// Access to an account was recovered: goes to every verified address.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountRecovered {
    /// The account's handle.
    pub handle: String,
    /// When.
    pub at: DateTime<Utc>,
    /// The notification's page.
    pub page: String,
    /// Where a passkey can undo it, while one can.
    pub undo: Option<String>,
}

/// Someone signed in from a device that was not seen before.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewSignIn {
    /// The account's handle.
    pub handle: String,
    /// When.
    pub at: DateTime<Utc>,
    /// The device, such as "Firefox on Linux".
    pub device: String,
    /// The notification's page.
    pub page: String,
}

fn sentence(step: SecuringStep) -> &'static str {
    match step {
        SecuringStep::SessionsEnded => "Every session was ended: you are signed out everywhere.",
        SecuringStep::RecoveriesCancelled => "Recoveries that were under way were cancelled.",
        SecuringStep::PasskeysRemoved => "Passkeys were removed.",
        SecuringStep::AddressesRemoved => "E-mail addresses were removed.",
    }
}

impl Stated for AccountSecured {
    fn facts(&self) -> Facts {
        let Self { handle, at, done, page } = self;
        let sentences = done.iter().map(|step| sentence(*step));
        Facts::default().word("handle", handle).time("at", *at).words("done", sentences).link("page", page)
    }

    fn samples() -> Vec<Self> {
        use SecuringStep::{AddressesRemoved, PasskeysRemoved, RecoveriesCancelled, SessionsEnded};
        let done = vec![SessionsEnded, RecoveriesCancelled, PasskeysRemoved, AddressesRemoved];
        let all = Self { handle: "ada".into(), at: sample_time(), done, page: sample_page() };
        let nothing = Self { done: Vec::new(), ..all.clone() };
        vec![all, nothing]
    }
}

impl Stated for AccountRecovered {
    fn facts(&self) -> Facts {
        let Self { handle, at, page, undo } = self;
        let facts = Facts::default().word("handle", handle).time("at", *at);
        facts.link("page", page).optional_link("undo", undo.as_deref())
    }

    fn samples() -> Vec<Self> {
        let undo = Some("https://id.example.com/recoveries/17/undo".into());
        let undoable = Self { handle: "ada".into(), at: sample_time(), page: sample_page(), undo };
        let settled = Self { undo: None, ..undoable.clone() };
        vec![undoable, settled]
    }
}

impl Stated for NewSignIn {
    fn facts(&self) -> Facts {
        let Self { handle, at, device, page } = self;
        Facts::default().word("handle", handle).time("at", *at).word("device", device).link("page", page)
    }

    fn samples() -> Vec<Self> {
        let device = "Firefox on Linux".into();
        vec![Self { handle: "ada".into(), at: sample_time(), device, page: sample_page() }]
    }
}
