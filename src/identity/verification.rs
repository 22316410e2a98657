//! Verifying an address by a link to it.

use sqlx::{Connection, PgConnection};

use super::accounts::lock_active;
use super::acts::{ActError, Acted, Missing};
use super::addresses::{lock_address, primary, set_primary};
use super::{AccountId, AddressId, VerificationRequested};
use crate::links::{LinkKeys, TokenDigest};
use crate::recorder::Recorder;

/// Asks for a verification link to `address`. Asked again, the link is the same while the first key is.
///
/// # Errors
/// No such address, one that is verified, an account that is not active, or the database.
pub async fn request_verification(
    connection: &mut PgConnection,
    recorder: &Recorder,
    keys: &LinkKeys,
    address: AddressId,
) -> Result<Acted<()>, ActError> {
    let found = lock_address(&mut *connection, address).await?;
    lock_active(&mut *connection, found.account_id).await?;
    if found.verified_at.is_some() {
        return Err(ActError::AlreadyVerified);
    }
    sqlx::query("update postrider_identity.email_addresses set verification_digest = $2 where id = $1")
        .bind(address)
        .bind(keys.verification_token(address).digest().0)
        .execute(&mut *connection)
        .await?;
    let event = VerificationRequested { account: found.account_id, address };
    Ok(Acted::new((), vec![recorder.record(connection, &event).await?]))
}

/// An address that its link verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verified {
    /// Whose.
    pub account: AccountId,
    /// Which.
    pub address: AddressId,
    /// It is the account's primary one now, as the account had none.
    pub made_primary: bool,
    /// It was verified before: the link was followed again.
    pub again: bool,
}

/// Verifies the address whose link has this token, as somebody brought it back. The first one becomes the account's
/// primary address. Followed again, a link changes nothing.
///
/// # Errors
/// A token of no link, or of an address that was removed or replaced; an account that is not active; another account
/// that has the address verified; or the database.
pub async fn verify_address(connection: &mut PgConnection, token: &str) -> Result<Verified, ActError> {
    let find = "select e.id from postrider_identity.email_addresses e where e.verification_digest = $1";
    let digest = TokenDigest::of_text(token);
    let address: Option<AddressId> = sqlx::query_scalar(find).bind(digest.0).fetch_optional(&mut *connection).await?;
    let address = address.ok_or(ActError::NoSuch(Missing::Link))?;
    let found = lock_address(&mut *connection, address).await.map_err(|error| match error {
        ActError::NoSuch(_) => ActError::NoSuch(Missing::Link),
        other => other,
    })?;
    let account = found.account_id;
    lock_active(&mut *connection, account).await?;
    if found.verified_at.is_some() {
        return Ok(Verified { account, address, made_primary: false, again: true });
    }
    note_verified(&mut *connection, address).await?;
    let made_primary = primary(&mut *connection, account).await?.is_none();
    if made_primary {
        set_primary(connection, account, address).await?;
    }
    Ok(Verified { account, address, made_primary, again: false })
}

/// Where another account verifies the same address at this moment, this waits for it. The refusal is caught in a
/// savepoint, so that the caller's transaction stays good.
async fn note_verified(connection: &mut PgConnection, address: AddressId) -> Result<(), ActError> {
    let mut savepoint = Connection::begin(connection).await?;
    let noted =
        sqlx::query("update postrider_identity.email_addresses set verified_at = statement_timestamp() where id = $1")
            .bind(address)
            .execute(&mut *savepoint)
            .await;
    match noted {
        Ok(_) => Ok(savepoint.commit().await?),
        Err(error) if is_taken(&error) => {
            savepoint.rollback().await?;
            Err(ActError::AddressTaken)
        }
        Err(error) => Err(error.into()),
    }
}

fn is_taken(error: &sqlx::Error) -> bool {
    let constraint = error.as_database_error().and_then(|error| error.constraint());
    constraint == Some("email_addresses_one_owner")
}
