//! What an account wants by e-mail.

use sqlx::PgConnection;

use super::AccountId;

/// Whether `account` gets announcements by e-mail that are not essential: so unless it opted out.
///
/// # Errors
/// The database.
pub async fn wants_announcements(connection: &mut PgConnection, account: AccountId) -> Result<bool, sqlx::Error> {
    let found = sqlx::query_scalar(
        "select p.announcements from postrider_identity.email_preferences p where p.account_id = $1",
    )
    .bind(account)
    .fetch_optional(connection)
    .await?;
    Ok(found.unwrap_or(true))
}

/// Opts `account` in or out of announcements; true where that changed anything. An account that is gone is no error.
///
/// # Errors
/// The database.
pub async fn set_announcements(
    connection: &mut PgConnection,
    account: AccountId,
    wanted: bool,
) -> Result<bool, sqlx::Error> {
    let changed = sqlx::query(
        "insert into postrider_identity.email_preferences as p (account_id, announcements)
         select a.id, $2 from postrider_identity.accounts a where a.id = $1
             on conflict (account_id) do update
            set announcements = excluded.announcements, changed_at = excluded.changed_at
          where p.announcements <> excluded.announcements",
    )
    .bind(account)
    .bind(wanted)
    .execute(connection)
    .await?;
    Ok(changed.rows_affected() == 1)
}
