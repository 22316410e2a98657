//! Accounts and their states.

use sqlx::PgConnection;

use super::AccountId;
use super::acts::{ActError, Missing};

/// Whether an account is in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccountState {
    /// It is.
    Active,
    /// An administrator disabled it.
    Disabled,
    /// Its owner closed it; it is purged later.
    Closed,
}

impl AccountState {
    /// As it stands in the row.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Disabled => "disabled",
            Self::Closed => "closed",
        }
    }
}

/// Creates an active account.
///
/// # Errors
/// The database; a handle that is taken.
pub async fn create_account(connection: &mut PgConnection, handle: &str) -> Result<AccountId, sqlx::Error> {
    let account = AccountId::generate();
    sqlx::query("insert into postrider_identity.accounts (id, handle) values ($1, $2)")
        .bind(account)
        .bind(handle)
        .execute(connection)
        .await?;
    Ok(account)
}

/// Puts an account in a state; true where that is a change. No link goes to one that is not active, and it is left out
/// of announcements. Its sessions are the caller's to end, by [`revoke_sessions`](super::revoke_sessions).
///
/// # Errors
/// No such account, or the database.
pub async fn set_state(
    connection: &mut PgConnection,
    account: AccountId,
    state: AccountState,
) -> Result<bool, ActError> {
    let before = lock(&mut *connection, account).await?;
    sqlx::query("update postrider_identity.accounts set state = $2 where id = $1")
        .bind(account)
        .bind(state.as_str())
        .execute(connection)
        .await?;
    Ok(before != state.as_str())
}

/// Locks the account until the caller's transaction ends, before anything of it is changed; its state.
async fn lock(connection: &mut PgConnection, account: AccountId) -> Result<String, ActError> {
    sqlx::query_scalar("select a.state from postrider_identity.accounts a where a.id = $1 for no key update")
        .bind(account)
        .fetch_optional(connection)
        .await?
        .ok_or(ActError::NoSuch(Missing::Account))
}

/// Locks the account as [`lock`] does, and refuses one that is not active.
pub(super) async fn lock_active(connection: &mut PgConnection, account: AccountId) -> Result<(), ActError> {
    if lock(connection, account).await? == AccountState::Active.as_str() { Ok(()) } else { Err(ActError::NotActive) }
}

/// Locks the account as [`lock`] does, in whatever state.
pub(super) async fn lock_any(connection: &mut PgConnection, account: AccountId) -> Result<(), ActError> {
    lock(connection, account).await.map(|_| ())
}
