//! The keys that sign and the set that is published.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value, json};

use super::{SigningAlgorithm, SigningKey, SigningKeyError};

/// Every key that is published, in order: **the first of an algorithm signs**.
///
/// To rotate, without a moment at which a receiver meets a key that it cannot find:
/// 1. add the new key *after* the old one and wait until every replica has it and receivers' caches of the set ran out;
/// 2. move it before the old one: it signs from now on;
/// 3. drop the old one once the last token that it signed has expired, two minutes later.
///
/// Cheap to clone: clones share the keys.
#[derive(Debug, Clone)]
pub struct SigningKeys {
    keys: Arc<[SigningKey]>,
}

/// Keys that make no set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SigningKeysError {
    /// There is none.
    #[error("no signing key is configured: at least one is needed")]
    Empty,
    /// One is there twice.
    #[error("the signing key {kid} is configured twice")]
    Duplicate {
        /// Its id, which is public.
        kid: String,
    },
    /// One is there twice, in two files or in one that is named twice.
    #[error("{} and {} hold the same signing key {kid}", first.display(), second.display())]
    DuplicateFiles {
        /// Its id, which is public.
        kid: String,
        /// The earlier file.
        first: PathBuf,
        /// The later file.
        second: PathBuf,
    },
    /// A file holds no key to sign with.
    #[error(transparent)]
    File(#[from] SigningKeyError),
}

impl SigningKeys {
    /// Takes the keys in the order in which they sign.
    ///
    /// # Errors
    /// Where there is none, or one is there twice.
    pub fn new(keys: Vec<SigningKey>) -> Result<Self, SigningKeysError> {
        if keys.is_empty() {
            return Err(SigningKeysError::Empty);
        }
        match first_duplicate(&keys) {
            Some((_, later)) => Err(SigningKeysError::Duplicate { kid: keys[later].kid().to_owned() }),
            None => Ok(Self { keys: keys.into() }),
        }
    }

    /// Reads one key per file, in the order in which they sign. Blocks for the reads.
    ///
    /// # Errors
    /// At the first file that holds no usable key, where two hold the same one, or where no file is given.
    pub fn from_pem_files(paths: &[PathBuf]) -> Result<Self, SigningKeysError> {
        let keys = paths.iter().map(|path| SigningKey::from_pem_file(path)).collect::<Result<Vec<_>, _>>()?;
        match first_duplicate(&keys) {
            Some((first, second)) => Err(SigningKeysError::DuplicateFiles {
                kid: keys[second].kid().to_owned(),
                first: paths[first].clone(),
                second: paths[second].clone(),
            }),
            None => Self::new(keys),
        }
    }

    /// The key that signs with `algorithm`: the first that can. `None` where no key can.
    pub fn signer(&self, algorithm: SigningAlgorithm) -> Option<&SigningKey> {
        self.keys.iter().find(|key| key.algorithm() == algorithm)
    }

    /// Every published key, in order.
    pub fn iter(&self) -> impl Iterator<Item = &SigningKey> {
        self.keys.iter()
    }

    /// The JSON Web Key Set (RFC 7517 5) of all keys, public parts only, for the host to serve at its `jwks_uri`.
    pub fn jwks(&self) -> Value {
        json!({ "keys": self.keys.iter().map(SigningKey::jwk).collect::<Vec<_>>() })
    }
}

/// The positions of the first key that is there twice: the earlier one and the later one.
fn first_duplicate(keys: &[SigningKey]) -> Option<(usize, usize)> {
    keys.iter().enumerate().find_map(|(later, key)| {
        let earlier = keys[..later].iter().position(|other| other.kid() == key.kid())?;
        Some((earlier, later))
    })
}
