//! The passkeys of an account.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::facts::{Facts, Stated, sample_page, sample_time};

/// A passkey was added.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PasskeyAdded {
    /// The account's handle.
    pub handle: String,
    /// When.
    pub at: DateTime<Utc>,
    /// The name that the passkey has.
    pub passkey: String,
    /// The notification's page.
    pub page: String,
}

/// A passkey was removed.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PasskeyRemoved {
    /// The account's handle.
    pub handle: String,
    /// When.
    pub at: DateTime<Utc>,
    /// The name that the passkey has.
    pub passkey: String,
    /// The notification's page.
    pub page: String,
}

macro_rules! stated {
    ($($content:ident),*) => {
        $(
            impl Stated for $content {
                fn facts(&self) -> Facts {
                    let Self { handle, at, passkey, page } = self;
                    Facts::default().word("handle", handle).time("at", *at).word("passkey", passkey).link("page", page)
                }

                fn samples() -> Vec<Self> {
                    let passkey = "Ada’s phone".into();
                    vec![Self { handle: "ada".into(), at: sample_time(), passkey, page: sample_page() }]
                }
            }
        )*
    };
}

stated!(PasskeyAdded, PasskeyRemoved);
