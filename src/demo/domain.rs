//! The demo's part of the reference domain: clients, accounts and sessions of one run.

use aws_lc_rs::digest;
use sqlx::{Connection, PgConnection};
use uuid::Uuid;

use super::DemoError;
use super::cast::Role;
use super::plan::{Ending, Fate, PlannedAccount};
use crate::identity::{
    AccountId, NewClient, SessionId, create_account, create_session, issue_code, redeem_code, register_client,
};
use crate::outbound::AddressPolicy;

/// How every client id and every account's handle of any demo begins.
pub(super) const CLIENT_PREFIX: &str = "postrider-demo-";

/// What keeps the ids of one run apart from those of every other.
#[derive(Debug, Clone)]
pub(super) struct Run(String);

impl Run {
    pub(super) fn new() -> Self {
        Self(Uuid::new_v4().simple().to_string()[..8].to_owned())
    }

    pub(super) fn client_id(&self, role: &Role) -> String {
        format!("{CLIENT_PREFIX}{}-{}", self.0, role.name)
    }

    fn handle(&self, number: usize) -> String {
        format!("{CLIENT_PREFIX}{}-{number}", self.0)
    }
}

/// An account as it is in the database.
#[derive(Debug, Clone)]
pub(super) struct Account {
    pub(super) id: AccountId,
    pub(super) ending: Ending,
    pub(super) sessions: Vec<Session>,
}

#[derive(Debug, Clone)]
pub(super) struct Session {
    pub(super) id: SessionId,
    pub(super) fate: Fate,
    /// Positions in the cast of the clients that have tokens from it.
    pub(super) roles: Vec<usize>,
}

/// Registers the role's client at `uri`.
pub(super) async fn register(
    connection: &mut PgConnection,
    run: &Run,
    role: &Role,
    uri: &str,
    policy: &AddressPolicy,
) -> Result<(), DemoError> {
    let (id, name, algorithm) = (run.client_id(role), role.name, role.algorithm);
    if role.place.is_admitted() {
        let backchannel_logout_uri = Some(uri);
        let client = NewClient { id: &id, name, backchannel_logout_uri, session_required: true, algorithm };
        return Ok(register_client(connection, &client, policy).await?);
    }
    // A row from before the address check, which would refuse it.
    sqlx::query(
        "insert into postrider_identity.oidc_clients (id, name, backchannel_logout_uri, id_token_signed_response_alg)
         values ($1, $2, $3, $4)",
    )
    .bind(id)
    .bind(name)
    .bind(uri)
    .bind(algorithm.as_str())
    .execute(connection)
    .await?;
    Ok(())
}

/// Makes the accounts and their sessions, and redeems a code for each client that a session has tokens for.
pub(super) async fn make(
    connection: &mut PgConnection,
    run: &Run,
    cast: &[Role],
    planned: Vec<PlannedAccount>,
) -> Result<Vec<Account>, DemoError> {
    let mut transaction = connection.begin().await?;
    let mut accounts = Vec::with_capacity(planned.len());
    for (number, account) in planned.into_iter().enumerate() {
        let id = create_account(&mut transaction, &run.handle(number)).await?;
        let mut sessions = Vec::with_capacity(account.sessions.len());
        for session in account.sessions {
            let id = create_session(&mut transaction, id).await?;
            for position in &session.roles {
                let Some(role) = cast.get(*position) else { continue };
                sign_in(&mut transaction, &run.client_id(role), id).await?;
            }
            sessions.push(Session { id, fate: session.fate, roles: session.roles });
        }
        accounts.push(Account { id, ending: account.ending, sessions });
    }
    transaction.commit().await?;
    Ok(accounts)
}

/// The client gets a code and redeems it.
async fn sign_in(connection: &mut PgConnection, client_id: &str, session: SessionId) -> Result<(), sqlx::Error> {
    let code = Uuid::new_v4();
    let digest = digest::digest(&digest::SHA256, code.as_bytes());
    issue_code(&mut *connection, digest.as_ref(), client_id, session).await?;
    redeem_code(connection, digest.as_ref()).await?;
    Ok(())
}
