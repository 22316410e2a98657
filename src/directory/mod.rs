//! What channels ask of the host's own tables. The reference domain is the first implementation.

use async_trait::async_trait;
use sqlx::PgConnection;

mod mail;

pub use self::mail::{
    Addressee, AnnouncementMail, LinkRecipient, Notice, NotificationMail, RecoveryRecipient, SecuringStep,
};
use crate::identity::{AccountId, AddressId, AnnouncementId, NotificationId, RecoveryId, SessionId};
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

/// The host's own tables, as channels read them. What a channel asks for it says in its own documentation; a host
/// leaves out what no channel of its asks for: a method that is not written fails each time it is called, so that what
/// needs it waits and is seen, and nothing is lost.
#[async_trait]
pub trait Directory: Send + Sync + 'static {
    /// The clients to tell of the end of `session`. Read in the transaction that records it.
    async fn session_clients(
        &self,
        connection: &mut PgConnection,
        session: SessionId,
    ) -> Result<Vec<SessionClient>, sqlx::Error> {
        let _ = (connection, session);
        Err(not_served("session_clients"))
    }

    /// Who the verification link of `address` goes to. Read when it is sent. `None` where there is nothing to verify any
    /// more: the address was removed, replaced or verified, or the account is not active.
    async fn verification(
        &self,
        connection: &mut PgConnection,
        account: AccountId,
        address: AddressId,
    ) -> Result<Option<LinkRecipient>, sqlx::Error> {
        let _ = (connection, account, address);
        Err(not_served("verification"))
    }

    /// Who the link of `recovery` goes to: `address`, the primary one when it was requested. Read when it is sent. `None`
    /// once the recovery is used, cancelled or expired by the database's clock, the account disabled, or the address gone
    /// or no longer the primary one: whoever still reads its mail must not get back in. What redeems the link asks the
    /// same again.
    async fn recovery(
        &self,
        connection: &mut PgConnection,
        recovery: RecoveryId,
        address: AddressId,
    ) -> Result<Option<RecoveryRecipient>, sqlx::Error> {
        let _ = (connection, recovery, address);
        Err(not_served("recovery"))
    }

    /// What a notification says and whom it is mailed to. Read in the transaction that records it, and copied. `None`
    /// where there is no such notification.
    async fn notification(
        &self,
        connection: &mut PgConnection,
        notification: NotificationId,
    ) -> Result<Option<NotificationMail>, sqlx::Error> {
        let _ = (connection, notification);
        Err(not_served("notification"))
    }

    /// The recipients of an announcement that are to get it by e-mail: those with a primary verified address, without
    /// those who opted out unless it is essential. Read in the transaction that sends it, up to `limit` of them at a time, in
    /// the order of their ids, beginning after `after`.
    async fn announcement_recipients(
        &self,
        connection: &mut PgConnection,
        announcement: AnnouncementId,
        after: Option<AccountId>,
        limit: u32,
    ) -> Result<Vec<AccountId>, sqlx::Error> {
        let _ = (connection, announcement, after, limit);
        Err(not_served("announcement_recipients"))
    }

    /// The announcement as it is for one recipient. Read when it is sent. `None` where nothing is to be sent: no primary
    /// verified address, no longer a recipient, or opted out since, unless it is essential.
    async fn announcement(
        &self,
        connection: &mut PgConnection,
        announcement: AnnouncementId,
        account: AccountId,
    ) -> Result<Option<AnnouncementMail>, sqlx::Error> {
        let _ = (connection, announcement, account);
        Err(not_served("announcement"))
    }

    /// Opts `account` out of announcements. Done again, it changes nothing; an account that is gone is no error.
    async fn unsubscribe(&self, connection: &mut PgConnection, account: AccountId) -> Result<(), sqlx::Error> {
        let _ = (connection, account);
        Err(not_served("unsubscribe"))
    }
}

fn not_served(method: &str) -> sqlx::Error {
    sqlx::Error::Configuration(format!("the host's Directory does not implement {method}").into())
}
