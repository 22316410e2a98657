//! The addresses of an account: added, made primary, looked up.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use super::accounts::{lock_active, lock_any};
use super::acts::{ActError, Acted, Missing};
use super::notify::{self, To};
use super::recovery::cancel_open;
use super::{AccountId, AddressId};
use crate::directory::Notice;
use crate::mail::EmailAddress;
use crate::recorder::Recorder;

/// An address of an account that was not removed.
#[derive(Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct Address {
    /// Its id.
    pub id: AddressId,
    /// Whose.
    pub account_id: AccountId,
    /// The address itself.
    pub address: String,
    /// The one that recoveries and announcements go to; always a verified one.
    pub is_primary: bool,
    /// When it was verified.
    pub verified_at: Option<DateTime<Utc>>,
}

impl std::fmt::Debug for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Address").field("id", &self.id).field("is_primary", &self.is_primary).finish_non_exhaustive()
    }
}

/// Adds an address, not yet verified. An account that has a primary address is told there. Others may have added or
/// verified the same one: whoever can read its mail decides, by the link.
///
/// # Errors
/// No active account, a text that is no address, an address that the account has already, or the database.
pub async fn add_address(
    connection: &mut PgConnection,
    recorder: &Recorder,
    account: AccountId,
    address: &str,
) -> Result<Acted<AddressId>, ActError> {
    let address = EmailAddress::parse(address)?;
    lock_active(&mut *connection, account).await?;
    let id = insert(&mut *connection, account, &address).await?;
    let has_primary = primary(&mut *connection, account).await?.is_some();
    let recorded = match has_primary {
        true => notify::write(connection, recorder, account, &Notice::AddressAdded, To::Primary).await?.into_parts().1,
        false => Vec::new(),
    };
    Ok(Acted::new(id, recorded))
}

/// One account has an address once, in whatever case.
pub(super) async fn insert(
    connection: &mut PgConnection,
    account: AccountId,
    address: &EmailAddress,
) -> Result<AddressId, ActError> {
    let id = AddressId::generate();
    let inserted = sqlx::query(
        "insert into postrider_identity.email_addresses (id, account_id, address) values ($1, $2, $3)
             on conflict (account_id, lower(address)) where removed_at is null do nothing",
    )
    .bind(id)
    .bind(account)
    .bind(address.to_string())
    .execute(connection)
    .await?;
    if inserted.rows_affected() == 1 { Ok(id) } else { Err(ActError::AlreadyThere) }
}

/// Makes a verified address the primary one. A recovery link that is on its way to the old one works no more.
///
/// # Errors
/// No such address, one that is not verified, or the database.
pub async fn make_primary(connection: &mut PgConnection, address: AddressId) -> Result<(), ActError> {
    let found = lock_address(&mut *connection, address).await?;
    if found.verified_at.is_none() {
        return Err(ActError::NotVerified);
    }
    if found.is_primary {
        return Ok(());
    }
    set_primary(connection, found.account_id, address).await.map_err(ActError::Database)
}

/// The old one first, as there is never more than one. What was sent to it opens nothing any more.
pub(super) async fn set_primary(
    connection: &mut PgConnection,
    account: AccountId,
    address: AddressId,
) -> Result<(), sqlx::Error> {
    cancel_open(&mut *connection, account).await?;
    for statement in [
        "update postrider_identity.email_addresses set is_primary = false
          where account_id = $1 and is_primary and id <> $2",
        "update postrider_identity.email_addresses set is_primary = true where account_id = $1 and id = $2",
    ] {
        sqlx::query(statement).bind(account).bind(address).execute(&mut *connection).await?;
    }
    Ok(())
}

/// The account's primary address.
///
/// # Errors
/// The database.
pub async fn primary(connection: &mut PgConnection, account: AccountId) -> Result<Option<AddressId>, sqlx::Error> {
    sqlx::query_scalar("select e.id from postrider_identity.email_addresses e where e.account_id = $1 and e.is_primary")
        .bind(account)
        .fetch_optional(connection)
        .await
}

/// The account's addresses that were not removed, the primary one first.
///
/// # Errors
/// The database.
pub async fn addresses(connection: &mut PgConnection, account: AccountId) -> Result<Vec<Address>, sqlx::Error> {
    sqlx::query_as(
        "select e.id, e.account_id, e.address, e.is_primary, e.verified_at
           from postrider_identity.email_addresses e
          where e.account_id = $1 and e.removed_at is null
          order by e.is_primary desc, e.id",
    )
    .bind(account)
    .fetch_all(connection)
    .await
}

/// Locks the account of an address that was not removed, and then reads the address: what others did to it before is
/// seen, and they do nothing to it until the caller's transaction ends.
pub(super) async fn lock_address(connection: &mut PgConnection, address: AddressId) -> Result<Address, ActError> {
    let find = "select e.account_id from postrider_identity.email_addresses e where e.id = $1";
    let account: Option<AccountId> = sqlx::query_scalar(find).bind(address).fetch_optional(&mut *connection).await?;
    let account = account.ok_or(ActError::NoSuch(Missing::Address))?;
    lock_any(&mut *connection, account).await?;
    let found: Option<Address> = sqlx::query_as(
        "select e.id, e.account_id, e.address, e.is_primary, e.verified_at
           from postrider_identity.email_addresses e
          where e.id = $1 and e.removed_at is null",
    )
    .bind(address)
    .fetch_optional(connection)
    .await?;
    found.ok_or(ActError::NoSuch(Missing::Address))
}
