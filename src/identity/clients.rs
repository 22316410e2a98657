//! OIDC clients.

use sqlx::PgConnection;

use super::SessionId;
use crate::directory::SessionClient;
use crate::outbound::{AddressPolicy, Destination, DestinationError};
use crate::signing::SigningAlgorithm;

/// A client to register.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewClient<'a> {
    /// Its client id.
    pub id: &'a str,
    /// Its name for people.
    pub name: &'a str,
    /// Where logout tokens go; `None`: it is not told.
    pub backchannel_logout_uri: Option<&'a str>,
    /// It needs `sid` in logout tokens.
    pub session_required: bool,
    /// What its ID tokens are signed with.
    pub algorithm: SigningAlgorithm,
}

/// A client that was not registered.
#[derive(Debug, thiserror::Error)]
pub enum RegistrationError {
    /// Its logout URI could never be delivered to.
    #[error("backchannel_logout_uri of client {client}: {source}")]
    Uri {
        /// Which client.
        client: String,
        /// What is wrong with the URI; never the URI itself.
        source: DestinationError,
    },
    /// The database failed.
    #[error("the database failed")]
    Database(#[from] sqlx::Error),
}

/// Registers a client. Its URI is stored in normal form. An address in it is judged by `policy` here, and again, with
/// whatever its name then resolves to, at each send.
///
/// # Errors
/// A URI that is not an absolute https URL without fragment and user part, one that names a refused address, or the
/// database.
pub async fn register_client(
    connection: &mut PgConnection,
    client: &NewClient<'_>,
    policy: &AddressPolicy,
) -> Result<(), RegistrationError> {
    let uri = match client.backchannel_logout_uri.map(|uri| Destination::parse_with(uri, policy)) {
        None => None,
        Some(Ok(destination)) => Some(destination.as_str().to_owned()),
        Some(Err(source)) => return Err(RegistrationError::Uri { client: client.id.into(), source }),
    };
    sqlx::query(
        "insert into postrider_identity.oidc_clients
                (id, name, backchannel_logout_uri, backchannel_logout_session_required, id_token_signed_response_alg)
         values ($1, $2, $3, $4, $5)
             on conflict (id) do update
            set name = excluded.name, backchannel_logout_uri = excluded.backchannel_logout_uri,
                backchannel_logout_session_required = excluded.backchannel_logout_session_required,
                id_token_signed_response_alg = excluded.id_token_signed_response_alg",
    )
    .bind(client.id)
    .bind(client.name)
    .bind(uri)
    .bind(client.session_required)
    .bind(client.algorithm.as_str())
    .execute(connection)
    .await?;
    Ok(())
}

/// Clients with a logout URI that received tokens from the session.
pub(super) async fn of_session(
    connection: &mut PgConnection,
    session: SessionId,
) -> Result<Vec<SessionClient>, sqlx::Error> {
    let rows: Vec<(String, String, String, String, String)> = sqlx::query_as(
        "select c.id, c.backchannel_logout_uri, sc.sub, sc.sid, c.id_token_signed_response_alg
           from postrider_identity.oidc_session_clients sc
           join postrider_identity.oidc_clients c on c.id = sc.client_id
          where sc.session_id = $1 and c.backchannel_logout_uri is not null
          order by c.id",
    )
    .bind(session)
    .fetch_all(connection)
    .await?;
    rows.into_iter()
        .map(|(client_id, backchannel_logout_uri, sub, sid, algorithm)| {
            let algorithm = algorithm.parse().map_err(|error| sqlx::Error::Decode(Box::new(error)))?;
            Ok(SessionClient { client_id, backchannel_logout_uri, sub: Some(sub), sid: Some(sid), algorithm })
        })
        .collect()
}
