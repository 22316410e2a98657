//! The addresses of an account. None of them is named: the page shows them to who may see them.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::facts::{Facts, Stated, sample_page, sample_time};

/// An address was replaced by another: goes to the address that was replaced.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddressReplaced {
    /// The account's handle.
    pub handle: String,
    /// When.
    pub at: DateTime<Utc>,
    /// The notification's page.
    pub page: String,
}

/// An address was removed: goes to that address.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddressRemoved {
    /// The account's handle.
    pub handle: String,
    /// When.
    pub at: DateTime<Utc>,
    /// The notification's page.
    pub page: String,
}

/// An address was added: goes to the primary address.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddressAdded {
    /// The account's handle.
    pub handle: String,
    /// When.
    pub at: DateTime<Utc>,
    /// The notification's page.
    pub page: String,
}

macro_rules! stated {
    ($($content:ident),*) => {
        $(
            impl Stated for $content {
                fn facts(&self) -> Facts {
                    let Self { handle, at, page } = self;
                    Facts::default().word("handle", handle).time("at", *at).link("page", page)
                }

                fn samples() -> Vec<Self> {
                    vec![Self { handle: "ada".into(), at: sample_time(), page: sample_page() }]
                }
            }
        )*
    };
}

stated!(AddressReplaced, AddressRemoved, AddressAdded);
