//! Ends sessions, in transactions that commit and in transactions that roll back.

use sqlx::{Connection, PgConnection};

use super::DemoError;
use super::domain::Account;
use super::plan::Ending;
use crate::identity::{Revoked, RevokedBy, Sessions, delete_account, revoke_sessions};
use crate::recorder::Recorder;

/// What was done so far.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Done {
    pub(super) commits: usize,
    pub(super) sessions: usize,
    pub(super) deliveries: usize,
    pub(super) rollbacks: usize,
    pub(super) sessions_rolled_back: usize,
    pub(super) deliveries_rolled_back: usize,
}

/// Ends the sessions of `account` as its ending says.
pub(super) async fn end_sessions(
    connection: &mut PgConnection,
    recorder: &Recorder,
    account: &Account,
    done: &mut Done,
) -> Result<(), DemoError> {
    let all = Sessions::OfAccount(account.id);
    match account.ending {
        Ending::SignOut => {
            for session in &account.sessions {
                revoke(connection, recorder, Sessions::One(session.id), RevokedBy::SignOut, Commit::Yes, done).await?;
            }
        }
        Ending::SignOutRolledBack => {
            for session in &account.sessions {
                revoke(connection, recorder, Sessions::One(session.id), RevokedBy::SignOut, Commit::No, done).await?;
            }
        }
        Ending::ByAdministrator => {
            revoke(connection, recorder, all, RevokedBy::Administrator, Commit::Yes, done).await?;
        }
        Ending::Elsewhere => {
            if let Some(here) = account.sessions.first() {
                let elsewhere = Sessions::OfAccountExcept(account.id, here.id);
                revoke(connection, recorder, elsewhere, RevokedBy::Security, Commit::Yes, done).await?;
            }
        }
        Ending::AccountDeleted => delete(connection, recorder, account, Commit::Yes, done).await?,
        Ending::DeletionRolledBack => delete(connection, recorder, account, Commit::No, done).await?,
    }
    Ok(())
}

#[derive(Debug, Clone, Copy)]
enum Commit {
    Yes,
    No,
}

async fn revoke(
    connection: &mut PgConnection,
    recorder: &Recorder,
    which: Sessions,
    by: RevokedBy,
    commit: Commit,
    done: &mut Done,
) -> Result<(), DemoError> {
    let mut transaction = connection.begin().await?;
    let revoked = revoke_sessions(&mut transaction, recorder, which, by).await?;
    finish(transaction, revoked, commit, done).await
}

async fn delete(
    connection: &mut PgConnection,
    recorder: &Recorder,
    account: &Account,
    commit: Commit,
    done: &mut Done,
) -> Result<(), DemoError> {
    let mut transaction = connection.begin().await?;
    let revoked = delete_account(&mut transaction, recorder, account.id).await?;
    finish(transaction, revoked, commit, done).await
}

async fn finish(
    transaction: sqlx::Transaction<'_, sqlx::Postgres>,
    revoked: Revoked,
    commit: Commit,
    done: &mut Done,
) -> Result<(), DemoError> {
    match commit {
        Commit::Yes => {
            transaction.commit().await?;
            done.commits += 1;
            done.sessions += revoked.sessions();
            done.deliveries += revoked.deliveries();
            revoked.committed();
        }
        Commit::No => {
            transaction.rollback().await?;
            done.rollbacks += 1;
            done.sessions_rolled_back += revoked.sessions();
            done.deliveries_rolled_back += revoked.deliveries();
        }
    }
    Ok(())
}
