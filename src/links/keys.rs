//! The configured keys: the first makes tokens, all are tried.

use std::fmt;
use std::sync::Arc;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::hmac;
use uuid::Uuid;

use super::key::{Derived, LinkKey};
use super::token::{LinkToken, TokenDigest};
use super::unsubscribe;
use crate::identity::{AccountId, AddressId, RecoveryId};

/// No key was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no key to derive links from")]
pub struct NoLinkKeys;

/// Keys that link tokens are derived from. The first derives new tokens; all are tried on what comes back and on what
/// is sent again. To change the key while several processes run, one step everywhere before the next begins:
///
/// 1. add the new key *last*: it makes nothing yet, but every process knows what it will make;
/// 2. put it *first*: it makes new links from now on, and the old one is still tried;
/// 3. drop the old one once the links made with it have served: 30 days after step 2 at the least, as unsubscribe links
///    must work that long (recoveries live an hour, verification links as long as their key).
///
/// Put first at once, a process that does not have it yet could neither send nor follow the links of one that has.
///
/// Cheap to clone. Its `Debug` shows how many there are.
#[derive(Clone)]
pub struct LinkKeys(Arc<[Derived]>);

impl LinkKeys {
    /// Takes keys, first the one that makes new tokens.
    ///
    /// # Errors
    /// None at all.
    pub fn new(keys: &[LinkKey]) -> Result<Self, NoLinkKeys> {
        if keys.is_empty() {
            return Err(NoLinkKeys);
        }
        Ok(Self(keys.iter().map(Derived::of).collect()))
    }

    /// How many keys there are.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The token of a new verification link: HMAC-SHA256 of the address's id.
    pub fn verification_token(&self, address: AddressId) -> LinkToken {
        token(&self.first().verification, address.0)
    }

    /// The token of a new recovery link: HMAC-SHA256 of the recovery's id.
    pub fn recovery_token(&self, recovery: RecoveryId) -> LinkToken {
        token(&self.first().recovery, recovery.0)
    }

    /// The token whose digest is stored, derived with whichever key made it; `None`: with none of these.
    pub fn verification_token_for(&self, address: AddressId, digest: &TokenDigest) -> Option<LinkToken> {
        matching(self.0.iter().map(|key| token(&key.verification, address.0)), digest)
    }

    /// The token whose digest is stored, derived with whichever key made it; `None`: with none of these.
    pub fn recovery_token_for(&self, recovery: RecoveryId, digest: &TokenDigest) -> Option<LinkToken> {
        matching(self.0.iter().map(|key| token(&key.recovery, recovery.0)), digest)
    }

    /// The token of an account's one-click unsubscribe link (RFC 8058 3.1): its id, encrypted and authenticated, so that
    /// it alone tells who and what list, shows neither, and cannot be made or changed by others. 43 characters of
    /// base64url. The same each time, and good for as long as its key is among those configured.
    pub fn unsubscribe_token(&self, account: AccountId) -> String {
        unsubscribe::seal(&self.first().unsubscribe, account)
    }

    /// Who an unsubscribe token is for; `None` for what none of these keys made, and for any other spelling of one.
    pub fn read_unsubscribe_token(&self, token: &str) -> Option<AccountId> {
        self.0.iter().find_map(|key| unsubscribe::open(&key.unsubscribe, token))
    }

    #[allow(clippy::indexing_slicing)] // `new` takes no empty list
    fn first(&self) -> &Derived {
        &self.0[0]
    }
}

impl fmt::Debug for LinkKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LinkKeys").field("count", &self.count()).finish_non_exhaustive()
    }
}

fn token(key: &hmac::Key, id: Uuid) -> LinkToken {
    LinkToken::of_bytes(hmac::sign(key, id.as_bytes()).as_ref())
}

fn matching(mut tokens: impl Iterator<Item = LinkToken>, digest: &TokenDigest) -> Option<LinkToken> {
    tokens.find(|token| verify_slices_are_equal(&token.digest().0, &digest.0).is_ok())
}
