//! Signed tokens: the keys that sign, the set that is published, and the logout token.
//!
//! Tokens are JSON Web Signatures in compact form (RFC 7515 7.1), made with aws-lc-rs directly: a key is parsed and
//! checked once, when it is loaded (with RSA that check costs several signatures), and no provider of cryptography that a
//! host installs for its whole process is involved.
//! Nothing here does I/O except reading and writing key files, and nothing here reads a clock.

mod algorithm;
mod form;
mod jwk;
mod jws;
mod key_file;
mod key_set;
mod keys;
mod logout_token;

pub use algorithm::{SigningAlgorithm, UnknownAlgorithm};
pub use form::{FORM_CONTENT_TYPE, logout_token_form};
pub(crate) use key_file::write_private;
pub use key_file::{KeyProblem, SigningKeyError};
pub use key_set::{SigningKeys, SigningKeysError};
pub use keys::{CryptographyFailed, SigningKey};
pub use logout_token::{
    BACKCHANNEL_LOGOUT_EVENT, InvalidSubject, LOGOUT_TOKEN_LIFETIME, LOGOUT_TOKEN_TYPE, LogoutSubject, LogoutToken,
};
