//! Links in e-mails: their tokens are derived from keys and stored nowhere.

mod token;

pub use self::token::TokenDigest;
