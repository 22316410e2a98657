//! Recovering an account by a link to its primary address.

use std::time::Duration;

use sqlx::PgConnection;

use super::accounts::{lock_active, lock_any};
use super::acts::{ActError, Acted, Missing};
use super::addresses::primary;
use super::notify::notify;
use super::secure::secure_account;
use super::sessions::{RevokedBy, Sessions, revoke_sessions};
use super::{AccountId, NotificationId, RecoveryId, RecoveryRequested};
use crate::directory::Notice;
use crate::links::{LinkKeys, TokenDigest};
use crate::queue::interval;
use crate::recorder::Recorder;

/// Asks for a recovery link to the account's primary address. It works for an hour, as long as that address is the
/// primary one; earlier ones work no more.
///
/// # Errors
/// No active account, one without a primary address, or the database.
pub async fn request_recovery(
    connection: &mut PgConnection,
    recorder: &Recorder,
    keys: &LinkKeys,
    account: AccountId,
) -> Result<Acted<RecoveryId>, ActError> {
    lock_active(&mut *connection, account).await?;
    let address = primary(&mut *connection, account).await?.ok_or(ActError::NoPrimary)?;
    cancel_open(&mut *connection, account).await?;
    let recovery = RecoveryId::generate();
    sqlx::query(
        "insert into postrider_identity.recoveries (id, account_id, address_id, token_digest) values ($1, $2, $3, $4)",
    )
    .bind(recovery)
    .bind(account)
    .bind(address)
    .bind(keys.recovery_token(recovery).digest().0)
    .execute(&mut *connection)
    .await?;
    let event = RecoveryRequested { account, recovery, address };
    Ok(Acted::new(recovery, vec![recorder.record(connection, &event).await?]))
}

/// A recovery that was used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recovered {
    /// Whose account.
    pub account: AccountId,
    /// Which recovery.
    pub recovery: RecoveryId,
    /// How many sessions ended.
    pub sessions: usize,
}

/// Uses the recovery whose link has this token, once: every session of the account ends, its other recoveries are
/// cancelled, and every verified address is told. `undoable_for` is how long a passkey of the account can undo it; `None`
/// where it has no passkey.
///
/// # Errors
/// A token of no link, or of a recovery that was used, cancelled or has expired, or whose address is no longer the
/// primary one; an account that is not active; or the database.
pub async fn use_recovery(
    connection: &mut PgConnection,
    recorder: &Recorder,
    token: &str,
    undoable_for: Option<Duration>,
) -> Result<Acted<Recovered>, ActError> {
    let find = "select r.id, r.account_id from postrider_identity.recoveries r where r.token_digest = $1";
    let digest = TokenDigest::of_text(token);
    let found: Option<(RecoveryId, AccountId)> =
        sqlx::query_as(find).bind(digest.0).fetch_optional(&mut *connection).await?;
    let (recovery, account) = found.ok_or(ActError::NoSuch(Missing::Link))?;
    lock_active(&mut *connection, account).await?;
    let used = sqlx::query(
        "update postrider_identity.recoveries r
            set used_at = statement_timestamp(), undo_until = statement_timestamp() + $2
          where r.id = $1 and r.used_at is null and r.cancelled_at is null and r.expires_at > statement_timestamp()
            and exists (select from postrider_identity.email_addresses e where e.id = r.address_id and e.is_primary)",
    )
    .bind(recovery)
    .bind(undoable_for.map(interval))
    .execute(&mut *connection)
    .await?;
    if used.rows_affected() == 0 {
        return Err(ActError::NoSuch(Missing::Recovery));
    }
    cancel_open(&mut *connection, account).await?;
    let which = Sessions::OfAccount(account);
    let revoked = revoke_sessions(&mut *connection, recorder, which, RevokedBy::Security).await?;
    let sessions = revoked.sessions();
    let mut recorded = revoked.into_recorded();
    let notice = Notice::AccountRecovered { undoable: undoable_for.map(|_| recovery) };
    recorded.extend(notify(connection, recorder, account, &notice).await?.into_parts().1);
    Ok(Acted::new(Recovered { account, recovery, sessions }, recorded))
}

/// Cancels a recovery that is still open.
///
/// # Errors
/// None such: it was used, cancelled or has expired; or the database.
pub async fn cancel_recovery(connection: &mut PgConnection, recovery: RecoveryId) -> Result<(), ActError> {
    lock_account_of(&mut *connection, recovery).await?;
    let cancelled = sqlx::query(
        "update postrider_identity.recoveries set cancelled_at = statement_timestamp()
          where id = $1 and used_at is null and cancelled_at is null and expires_at > statement_timestamp()",
    )
    .bind(recovery)
    .execute(connection)
    .await?;
    if cancelled.rows_affected() == 1 { Ok(()) } else { Err(ActError::NoSuch(Missing::Recovery)) }
}

/// Undoes a recovery while that is possible, once: the way in that it opened is closed as by
/// [`secure_account`](super::secure_account), which tells every verified address. That a passkey of the account asked for
/// it is the caller's to check.
///
/// # Errors
/// None such that can still be undone, or the database.
pub async fn undo_recovery(
    connection: &mut PgConnection,
    recorder: &Recorder,
    recovery: RecoveryId,
) -> Result<Acted<NotificationId>, ActError> {
    let account = lock_account_of(&mut *connection, recovery).await?;
    let undone = sqlx::query(
        "update postrider_identity.recoveries set undo_until = statement_timestamp()
          where id = $1 and undo_until > statement_timestamp()",
    )
    .bind(recovery)
    .execute(&mut *connection)
    .await?;
    if undone.rows_affected() == 0 {
        return Err(ActError::NoSuch(Missing::Recovery));
    }
    secure_account(connection, recorder, account, &[]).await
}

async fn lock_account_of(connection: &mut PgConnection, recovery: RecoveryId) -> Result<AccountId, ActError> {
    let find = "select r.account_id from postrider_identity.recoveries r where r.id = $1";
    let account: Option<AccountId> = sqlx::query_scalar(find).bind(recovery).fetch_optional(&mut *connection).await?;
    let account = account.ok_or(ActError::NoSuch(Missing::Recovery))?;
    lock_any(connection, account).await?;
    Ok(account)
}

/// Cancels what is open of the account, whose row the caller has locked; returns how many.
pub(super) async fn cancel_open(connection: &mut PgConnection, account: AccountId) -> Result<u64, sqlx::Error> {
    let cancelled = sqlx::query(
        "update postrider_identity.recoveries set cancelled_at = statement_timestamp()
          where account_id = $1 and used_at is null and cancelled_at is null and expires_at > statement_timestamp()",
    )
    .bind(account)
    .execute(connection)
    .await?;
    Ok(cancelled.rows_affected())
}
