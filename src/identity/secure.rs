//! Securing an account.

use sqlx::PgConnection;

use super::accounts::lock_any;
use super::acts::{ActError, Acted};
use super::notify::notify;
use super::recovery::cancel_open;
use super::sessions::{RevokedBy, Sessions, revoke_sessions};
use super::{AccountId, NotificationId};
use crate::directory::{Notice, SecuringStep};
use crate::recorder::Recorder;

/// Ends every session of the account, cancels its recoveries and tells every verified address what was done.
/// `more` is what the host did besides in the same transaction.
///
/// # Errors
/// No such account, or the database.
pub async fn secure_account(
    connection: &mut PgConnection,
    recorder: &Recorder,
    account: AccountId,
    more: &[SecuringStep],
) -> Result<Acted<NotificationId>, ActError> {
    lock_any(&mut *connection, account).await?;
    let which = Sessions::OfAccount(account);
    let revoked = revoke_sessions(&mut *connection, recorder, which, RevokedBy::Security).await?;
    let mut done = vec![SecuringStep::SessionsEnded];
    if cancel_open(&mut *connection, account).await? > 0 {
        done.push(SecuringStep::RecoveriesCancelled);
    }
    done.extend(more.iter().filter(|step| !done.contains(step)).copied().collect::<Vec<_>>());
    let notice = Notice::AccountSecured { done };
    let (notification, told) = notify(connection, recorder, account, &notice).await?.into_parts();
    let mut recorded = revoked.into_recorded();
    recorded.extend(told);
    Ok(Acted::new(notification, recorded))
}
