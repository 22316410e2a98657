//! What e-mails say: closed, typed contents, each with a template in plain text and its twin in HTML.
//!
//! A [`Content`] is what a message is about, a [`Renderer`] turns it into a subject, a text and an HTML page, under a
//! [`Letterhead`]. Names and devices are harmless by then: controls and bidirectional overrides are gone, and no subject
//! holds a line break (RFC 5322 2.2.3).
//!
//! Templates are in `templates/email/` and part of the program. [`Renderer::new`] checks every one of them against the
//! content it is for, so a template that names what its content lacks, or leaves out what its content has, fails the
//! tests and the start, never a message.
//!
//! ```
//! use postrider::content::{Letterhead, PasskeyAdded, Renderer};
//!
//! let letterhead = Letterhead { service: "Example ID".into(), home: "https://id.example.com/".into() };
//! let renderer = Renderer::new(&letterhead)?;
//! let content = PasskeyAdded {
//!     handle: "ada".into(),
//!     passkey: "Blue\r\nkey".into(),
//!     at: "2026-12-01T07:15:00Z".parse()?,
//!     page: "https://id.example.com/inbox/17".into(),
//! };
//! let rendered = renderer.render(&content.into())?;
//! assert_eq!(rendered.subject, "A passkey was added to your Example ID account");
//! assert!(rendered.text.contains("“Blue key”"));
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```

mod access;
mod addresses;
mod check;
mod error;
mod facts;
mod harmless;
mod links;
mod paragraphs;
mod passkeys;
mod render;
mod templates;
mod words;
mod wrap;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use self::access::{AccountRecovered, AccountSecured, NewSignIn};
pub use self::addresses::{AddressAdded, AddressRemoved, AddressReplaced};
pub use self::error::{RenderError, TemplateError};
use self::facts::{Facts, Stated};
pub use self::links::{RecoveryLink, VerificationLink};
pub use self::passkeys::{PasskeyAdded, PasskeyRemoved};
pub use self::render::{Letterhead, Rendered, Renderer};
pub use self::words::{Alert, Announcement};

/// Declares [`Content`]: the variants, their names, and that each states its facts and has samples.
macro_rules! contents {
    ($($(#[$meta:meta])* $variant:ident = $name:literal,)*) => {
        /// What one e-mail says.
        ///
        /// It is stored under its name in `content`, its fields beside it. A release ignores fields that it does not
        /// know and takes an option that is missing for none; a content that it does not know at all is an error, and the
        /// delivery is for a newer replica. What holds a secret is never stored: see [`Self::VerificationLink`].
        ///
        /// Its `Debug` shows its name alone.
        #[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(tag = "content")]
        pub enum Content {
            $($(#[$meta])* #[serde(rename = $name)] $variant($variant),)*
        }

        impl Content {
            /// The names of all contents, which are those of their templates.
            pub const NAMES: &[&str] = &[$($name),*];

            /// Its name.
            pub const fn name(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => $name,)*
                }
            }

            /// Made-up contents: of each at least one that has every option, and one for each option that it lacks.
            pub fn samples() -> Vec<Self> {
                [$($variant::samples().into_iter().map(Self::$variant).collect::<Vec<_>>()),*].concat()
            }

            fn facts(&self) -> Facts {
                match self {
                    $(Self::$variant(content) => content.facts(),)*
                }
            }
        }

        $(
            impl From<$variant> for Content {
                fn from(content: $variant) -> Self {
                    Self::$variant(content)
                }
            }

            impl fmt::Debug for $variant {
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.write_str(stringify!($variant))
                }
            }
        )*
    };
}

contents! {
    /// Someone is to confirm that an address is theirs. Its link is a secret, so it is made for each attempt and
    /// cannot be serialised.
    #[serde(skip)]
    VerificationLink = "verification_link",
    /// Someone is to recover an account. Its link is a secret, so it is made for each attempt and cannot be serialised.
    #[serde(skip)]
    RecoveryLink = "recovery_link",
    /// An account was secured.
    AccountSecured = "account_secured",
    /// Access to an account was recovered.
    AccountRecovered = "account_recovered",
    /// To the address that another took the place of.
    AddressReplaced = "address_replaced",
    /// To the address that was removed.
    AddressRemoved = "address_removed",
    /// An address was added.
    AddressAdded = "address_added",
    /// A passkey was added.
    PasskeyAdded = "passkey_added",
    /// A passkey was removed.
    PasskeyRemoved = "passkey_removed",
    /// Someone signed in from a device that was not seen before.
    NewSignIn = "new_sign_in",
    /// An alert.
    Alert = "alert",
    /// An administrator's announcement.
    Announcement = "announcement",
}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Content({})", self.name())
    }
}
