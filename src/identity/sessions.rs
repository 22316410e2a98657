//! Sessions, and the one way in which a session ends early.

use serde::Serialize;
use sqlx::PgConnection;

use super::{AccountId, SessionId};
use crate::event::Event;
use crate::recorder::{RecordError, Recorded, Recorder};

/// Why a session ended early.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RevokedBy {
    /// The person signed out.
    SignOut,
    /// An administrator ended it.
    Administrator,
    /// Something about the account's security changed.
    Security,
    /// The account was deleted.
    AccountDeleted,
}

impl RevokedBy {
    const fn as_str(self) -> &'static str {
        match self {
            Self::SignOut => "sign_out",
            Self::Administrator => "administrator",
            Self::Security => "security",
            Self::AccountDeleted => "account_deleted",
        }
    }
}

/// A session ended before its time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SessionRevoked {
    /// Which session.
    pub session: SessionId,
    /// Whose.
    pub account: AccountId,
    /// Why.
    pub by: RevokedBy,
}

impl Event for SessionRevoked {
    const KIND: &'static str = "session_revoked";
}

/// Which sessions to revoke.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sessions {
    /// This one.
    One(SessionId),
    /// Every one of the account.
    OfAccount(AccountId),
    /// Every one of the account but this.
    OfAccountExcept(AccountId, SessionId),
}

/// Sessions could not be revoked. Roll the transaction back.
#[derive(Debug, thiserror::Error)]
pub enum RevokeError {
    /// The database failed.
    #[error("the database failed")]
    Database(#[from] sqlx::Error),
    /// An event could not be recorded.
    #[error(transparent)]
    Record(#[from] RecordError),
}

/// Sessions that end when the caller's transaction commits.
#[derive(Debug, Default)]
#[must_use = "call committed() after the commit, so that clients are told at once"]
pub struct Revoked(Vec<Recorded>);

impl Revoked {
    /// How many sessions.
    pub fn sessions(&self) -> usize {
        self.0.len()
    }

    /// How many clients will be told.
    pub fn deliveries(&self) -> usize {
        self.0.iter().map(|recorded| recorded.deliveries.len()).sum()
    }

    /// Says that the transaction is committed.
    pub fn committed(self) {
        self.0.into_iter().for_each(Recorded::committed);
    }

    pub(super) fn into_recorded(self) -> Vec<Recorded> {
        self.0
    }
}

/// Ends sessions before their time: the only way there is. Records one [`SessionRevoked`] for each that was not revoked
/// before, in the caller's transaction.
///
/// # Errors
/// The database, or an event that could not be recorded.
pub async fn revoke_sessions(
    connection: &mut PgConnection,
    recorder: &Recorder,
    which: Sessions,
    by: RevokedBy,
) -> Result<Revoked, RevokeError> {
    let (session, account, except) = match which {
        Sessions::One(session) => (Some(session), None, None),
        Sessions::OfAccount(account) => (None, Some(account), None),
        Sessions::OfAccountExcept(account, session) => (None, Some(account), Some(session)),
    };
    let ended: Vec<(SessionId, AccountId)> = sqlx::query_as(
        "update postrider_identity.sessions s
            set revoked_at = statement_timestamp(), revoked_by = $4
          where s.revoked_at is null
            and (s.id = $1 or (s.account_id = $2 and s.id is distinct from $3))
      returning s.id, s.account_id",
    )
    .bind(session)
    .bind(account)
    .bind(except)
    .bind(by.as_str())
    .fetch_all(&mut *connection)
    .await?;
    let mut revoked = Revoked::default();
    for (session, account) in ended {
        let event = SessionRevoked { session, account, by };
        revoked.0.push(recorder.record(&mut *connection, &event).await?);
    }
    Ok(revoked)
}

/// Begins a session.
///
/// # Errors
/// The database; an account that does not exist.
pub async fn create_session(connection: &mut PgConnection, account: AccountId) -> Result<SessionId, sqlx::Error> {
    let session = SessionId::generate();
    sqlx::query("insert into postrider_identity.sessions (id, account_id) values ($1, $2)")
        .bind(session)
        .bind(account)
        .execute(connection)
        .await?;
    Ok(session)
}

/// Notes an authorization code by the SHA-256 digest of it.
///
/// # Errors
/// The database; a client or session that does not exist.
pub async fn issue_code(
    connection: &mut PgConnection,
    code_digest: &[u8],
    client_id: &str,
    session: SessionId,
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "insert into postrider_identity.oidc_authorization_codes (code_digest, client_id, session_id) values ($1, $2, $3)",
    )
    .bind(code_digest)
    .bind(client_id)
    .bind(session)
    .execute(connection)
    .await?;
    Ok(())
}

/// Redeems a code once; true where it was there and not yet redeemed. The trigger then notes the client as one that has
/// tokens from the session.
///
/// # Errors
/// The database.
pub async fn redeem_code(connection: &mut PgConnection, code_digest: &[u8]) -> Result<bool, sqlx::Error> {
    let redeemed = sqlx::query(
        "update postrider_identity.oidc_authorization_codes set redeemed_at = statement_timestamp()
          where code_digest = $1 and redeemed_at is null",
    )
    .bind(code_digest)
    .execute(connection)
    .await?;
    Ok(redeemed.rows_affected() == 1)
}
