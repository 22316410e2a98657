//! Links in e-mails: their tokens are derived from keys and stored nowhere; and where the host's pages are.
//!
//! A row of the domain holds the SHA-256 digest of a token, so that whoever reads the database cannot follow a link, and
//! whoever holds a link can be let in. The sender derives the token again; after a change of keys it tries each.

mod key;
mod key_file;
mod keys;
mod pages;
mod token;
mod unsubscribe;

pub use self::key::LinkKey;
pub use self::key_file::{LinkKeyError, LinkKeyProblem};
pub use self::keys::{LinkKeys, NoLinkKeys};
pub use self::pages::{Page, Pages, PagesError};
pub use self::token::{LinkToken, TokenDigest};

/// What links are made of. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Links {
    /// Where the host's pages are.
    pub pages: Pages,
    /// What their tokens are derived from.
    pub keys: LinkKeys,
}
