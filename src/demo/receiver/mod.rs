//! Receivers of logout tokens: real HTTPS servers that check what they get and note it down.

mod behaviour;
mod http;
mod ledger;
mod server;
mod token;

pub(super) use self::behaviour::{Answer, Behaviour};
pub(super) use self::ledger::{Ledger, Receipt};
pub(super) use self::server::{LOGOUT_PATH, Receivers, Relying};
pub(super) use self::token::Jwks;
