//! What channels ask of the host's own tables. The reference domain is the first implementation.

use async_trait::async_trait;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::signing::SigningAlgorithm;

/// A client that received tokens from a session and registered a back-channel logout URI.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionClient {
    /// The client id: `aud` of the logout token.
    pub client_id: String,
    /// Its registered back-channel logout URI.
    pub backchannel_logout_uri: String,
    /// `sub` as this client's ID tokens carry it.
    pub sub: Option<String>,
    /// `sid` as this client's ID tokens carry it.
    pub sid: Option<String>,
    /// The algorithm that it registered for ID tokens, which its logout tokens are signed with.
    pub algorithm: SigningAlgorithm,
}

/// The host's accounts, sessions and clients, as channels read them. Reads run in the transaction that records an event.
#[async_trait]
pub trait Directory: Send + Sync + 'static {
    /// The clients to tell of the end of `session`.
    async fn session_clients(
        &self,
        connection: &mut PgConnection,
        session: Uuid,
    ) -> Result<Vec<SessionClient>, sqlx::Error>;
}
