//! Writing a notification to an account's inbox, and to whom it is mailed.

use sqlx::PgConnection;

use super::acts::{ActError, Acted, Missing};
use super::notice::stored;
use super::{AccountId, AddressId, NotificationId, Notified};
use crate::directory::Notice;
use crate::recorder::Recorder;

/// Which of an account's addresses a notification is mailed to.
#[derive(Debug, Clone, Copy)]
pub(super) enum To {
    /// Every verified one.
    Verified,
    /// The primary one.
    Primary,
    /// This one, removed though it may be.
    One(AddressId),
    /// None.
    Nobody,
}

/// Writes `notice` to the account's inbox and has it mailed, each address once: that the account was secured or
/// recovered goes to every verified address, anything else to the primary one. Without such an address it stays in the
/// inbox.
///
/// # Errors
/// No such account, a notice of a removed or replaced address (which the removal itself writes), or the database.
pub async fn notify(
    connection: &mut PgConnection,
    recorder: &Recorder,
    account: AccountId,
    notice: &Notice,
) -> Result<Acted<NotificationId>, ActError> {
    let to = match notice {
        Notice::AccountSecured { .. } | Notice::AccountRecovered { .. } => To::Verified,
        Notice::AddressRemoved | Notice::AddressReplaced => return Err(ActError::OfAnAct),
        Notice::AddressAdded
        | Notice::PasskeyAdded { .. }
        | Notice::PasskeyRemoved { .. }
        | Notice::NewSignIn { .. }
        | Notice::Alert { .. } => To::Primary,
    };
    write(connection, recorder, account, notice, to).await
}

pub(super) async fn write(
    connection: &mut PgConnection,
    recorder: &Recorder,
    account: AccountId,
    notice: &Notice,
    to: To,
) -> Result<Acted<NotificationId>, ActError> {
    let notification = NotificationId::generate();
    let (kind, facts) = stored(notice);
    let written = sqlx::query(
        "insert into postrider_identity.notifications (id, account_id, kind, facts)
         select $1, a.id, $3, $4 from postrider_identity.accounts a where a.id = $2",
    )
    .bind(notification)
    .bind(account)
    .bind(kind)
    .bind(facts)
    .execute(&mut *connection)
    .await?;
    if written.rows_affected() == 0 {
        return Err(ActError::NoSuch(Missing::Account));
    }
    address(&mut *connection, account, notification, to).await?;
    let recorded = recorder.record(connection, &Notified { account, notification }).await?;
    Ok(Acted::new(notification, vec![recorded]))
}

async fn address(
    connection: &mut PgConnection,
    account: AccountId,
    notification: NotificationId,
    to: To,
) -> Result<(), sqlx::Error> {
    let (one, primary_only) = match to {
        To::Verified => (None, false),
        To::Primary => (None, true),
        To::One(address) => (Some(address), false),
        To::Nobody => return Ok(()),
    };
    sqlx::query(
        "insert into postrider_identity.notification_addressees (notification_id, address_id)
         select $1, e.id from postrider_identity.email_addresses e
          where e.account_id = $2
            and case when $3::uuid is not null then e.id = $3
                     when $4 then e.is_primary
                     else e.verified_at is not null and e.removed_at is null end",
    )
    .bind(notification)
    .bind(account)
    .bind(one)
    .bind(primary_only)
    .execute(connection)
    .await?;
    Ok(())
}
