//! Purging an account.

use sqlx::PgConnection;

use super::AccountId;
use super::sessions::{RevokeError, Revoked, RevokedBy, Sessions, revoke_sessions};
use crate::channels::Announcement;
use crate::queue::delete_of_owner;
use crate::recorder::Recorder;

/// Purges an account: deletes it with its addresses, sessions, recoveries, inbox and preferences, tells every client that
/// has tokens from its sessions, and deletes its announcements that are on their way, all in the caller's transaction.
///
/// Its e-mail deliveries stay: a link is not sent any more, as there is nobody to read, and a notice goes to the address
/// that its row copied, which says what happened to the account and goes with the row. `postrider.events` keeps the ids.
///
/// # Errors
/// As [`revoke_sessions`].
pub async fn delete_account(
    connection: &mut PgConnection,
    recorder: &Recorder,
    account: AccountId,
) -> Result<Revoked, RevokeError> {
    // Before all else: an announcement that is being sent to the account is waited for, and then found below; no session
    // begins meanwhile.
    sqlx::query("select from postrider_identity.accounts a where a.id = $1 for update")
        .bind(account)
        .execute(&mut *connection)
        .await?;
    let which = Sessions::OfAccount(account);
    let revoked = revoke_sessions(&mut *connection, recorder, which, RevokedBy::AccountDeleted).await?;
    delete_of_owner(&mut *connection, &Announcement::channel_name(), &account.to_string()).await?;
    sqlx::query("delete from postrider_identity.accounts where id = $1").bind(account).execute(connection).await?;
    Ok(revoked)
}
