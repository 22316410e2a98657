//! The reference domain: accounts, sessions and OIDC clients of an identity provider, in the schema
//! `postrider_identity`, so that the channels work end to end.

mod clients;
mod events;
mod ids;
mod sessions;

use async_trait::async_trait;
use sqlx::PgConnection;

pub use self::clients::{NewClient, RegistrationError, register_client};
pub use self::events::{AnnouncementSent, Notified, RecoveryRequested, VerificationRequested};
pub use self::ids::{AccountId, AddressId, AnnouncementId, NotificationId, RecoveryId, SessionId};
pub use self::sessions::{
    RevokeError, Revoked, RevokedBy, SessionRevoked, Sessions, create_account, create_session, delete_account,
    issue_code, redeem_code, revoke_sessions,
};
use crate::directory::{Directory, SessionClient};

/// The reference domain as channels read it.
#[derive(Debug, Clone, Copy, Default)]
pub struct ReferenceDirectory;

#[async_trait]
impl Directory for ReferenceDirectory {
    async fn session_clients(
        &self,
        connection: &mut PgConnection,
        session: SessionId,
    ) -> Result<Vec<SessionClient>, sqlx::Error> {
        clients::of_session(connection, session).await
    }
}
