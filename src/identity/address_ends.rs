//! Removing an address, or replacing it by another.

use sqlx::PgConnection;

use super::AddressId;
use super::accounts::lock_active;
use super::acts::{ActError, Acted};
use super::addresses::{Address, insert, lock_address};
use super::notify::{self, To};
use super::recovery::cancel_open;
use crate::directory::Notice;
use crate::mail::EmailAddress;
use crate::recorder::{Recorded, Recorder};

/// Removes an address, never the primary one. One that was verified is told so; one that never was belongs to nobody
/// known, and is not written to.
///
/// # Errors
/// No such address, the primary one, or the database.
pub async fn remove_address(
    connection: &mut PgConnection,
    recorder: &Recorder,
    address: AddressId,
) -> Result<Acted<()>, ActError> {
    let found = lock_address(&mut *connection, address).await?;
    if found.is_primary {
        return Err(ActError::IsPrimary);
    }
    end(&mut *connection, address).await?;
    Ok(Acted::new((), tell(connection, recorder, &found, &Notice::AddressRemoved).await?))
}

/// Replaces an address by another, which has an id of its own and is to be verified. The old one is told as with
/// [`remove_address`]. Where it was the primary one, the account has none until one is made primary or the new one is
/// verified, and a recovery link that is on its way to the old one works no more.
///
/// # Errors
/// No such address, a text that is no address, one that the account has already, an account that is not active, or the
/// database.
pub async fn replace_address(
    connection: &mut PgConnection,
    recorder: &Recorder,
    old: AddressId,
    new: &str,
) -> Result<Acted<AddressId>, ActError> {
    let new = EmailAddress::parse(new)?;
    let found = lock_address(&mut *connection, old).await?;
    lock_active(&mut *connection, found.account_id).await?;
    let new = insert(&mut *connection, found.account_id, &new).await?;
    if found.is_primary {
        cancel_open(&mut *connection, found.account_id).await?;
    }
    end(&mut *connection, old).await?;
    sqlx::query("update postrider_identity.email_addresses set replaced_by = $2 where id = $1")
        .bind(old)
        .bind(new)
        .execute(&mut *connection)
        .await?;
    Ok(Acted::new(new, tell(connection, recorder, &found, &Notice::AddressReplaced).await?))
}

async fn end(connection: &mut PgConnection, address: AddressId) -> Result<(), sqlx::Error> {
    sqlx::query(
        "update postrider_identity.email_addresses set removed_at = statement_timestamp(), is_primary = false
          where id = $1",
    )
    .bind(address)
    .execute(connection)
    .await?;
    Ok(())
}

async fn tell(
    connection: &mut PgConnection,
    recorder: &Recorder,
    ended: &Address,
    notice: &Notice,
) -> Result<Vec<Recorded>, ActError> {
    let to = if ended.verified_at.is_some() { To::One(ended.id) } else { To::Nobody };
    let (_, recorded) = notify::write(connection, recorder, ended.account_id, notice, to).await?.into_parts();
    Ok(recorded)
}
