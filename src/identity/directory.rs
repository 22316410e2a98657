//! The reference domain as channels read it.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

use super::notice::stored_notice;
use super::{AccountId, AddressId, AnnouncementId, NotificationId, RecoveryId, SessionId, clients, preferences};
use crate::directory::{
    Addressee, AnnouncementMail, Directory, LinkRecipient, NotificationMail, RecoveryRecipient, SessionClient,
};
use crate::links::TokenDigest;

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

    async fn verification(
        &self,
        connection: &mut PgConnection,
        account: AccountId,
        address: AddressId,
    ) -> Result<Option<LinkRecipient>, sqlx::Error> {
        let found: Option<LinkRow> = sqlx::query_as(
            "select e.address, a.handle, e.verification_digest as digest
               from postrider_identity.email_addresses e
               join postrider_identity.accounts a on a.id = e.account_id
              where e.id = $1 and e.account_id = $2 and a.state = 'active'
                and e.removed_at is null and e.verified_at is null and e.verification_digest is not null",
        )
        .bind(address)
        .bind(account)
        .fetch_optional(connection)
        .await?;
        found.map(LinkRow::recipient).transpose()
    }

    async fn recovery(
        &self,
        connection: &mut PgConnection,
        recovery: RecoveryId,
        address: AddressId,
    ) -> Result<Option<RecoveryRecipient>, sqlx::Error> {
        let found: Option<RecoveryRow> = sqlx::query_as(
            "select e.address, a.handle, r.token_digest as digest, r.expires_at
               from postrider_identity.recoveries r
               join postrider_identity.accounts a on a.id = r.account_id
               join postrider_identity.email_addresses e on e.id = r.address_id and e.account_id = r.account_id
              where r.id = $1 and r.address_id = $2 and a.state = 'active'
                and r.used_at is null and r.cancelled_at is null and r.expires_at > statement_timestamp()
                and e.is_primary",
        )
        .bind(recovery)
        .bind(address)
        .fetch_optional(connection)
        .await?;
        found.map(RecoveryRow::recipient).transpose()
    }

    async fn notification(
        &self,
        connection: &mut PgConnection,
        notification: NotificationId,
    ) -> Result<Option<NotificationMail>, sqlx::Error> {
        let found: Option<NotificationRow> = sqlx::query_as(
            "select n.account_id, a.handle, n.created_at, n.kind, n.facts,
                    (select r.id from postrider_identity.recoveries r
                      where n.kind = 'account_recovered' and r.id = (n.facts->>'recovery')::uuid
                        and r.undo_until > statement_timestamp()) as undoable
               from postrider_identity.notifications n
               join postrider_identity.accounts a on a.id = n.account_id
              where n.id = $1 and n.announcement_id is null",
        )
        .bind(notification)
        .fetch_optional(&mut *connection)
        .await?;
        let Some(found) = found else { return Ok(None) };
        let addressees: Vec<(AddressId, String)> = sqlx::query_as(
            "select e.id, e.address
               from postrider_identity.notification_addressees na
               join postrider_identity.email_addresses e on e.id = na.address_id
              where na.notification_id = $1
              order by e.id",
        )
        .bind(notification)
        .fetch_all(connection)
        .await?;
        let addressees =
            addressees.into_iter().map(|(address_id, address)| Addressee { address_id, address }).collect();
        let notice = stored_notice(&found.kind, &found.facts, found.undoable)?;
        let (account, handle, at) = (found.account_id, found.handle, found.created_at);
        Ok(Some(NotificationMail { account, handle, at, notice, addressees }))
    }

    async fn announcement_recipients(
        &self,
        connection: &mut PgConnection,
        announcement: AnnouncementId,
        after: Option<AccountId>,
        limit: u32,
    ) -> Result<Vec<AccountId>, sqlx::Error> {
        // From one to the next: recipients are read in the transaction that wrote them, of which the planner has no
        // statistics, and any other plan may sort all of them for each page. No id is below the nil UUID, and no
        // account's is equal to it.
        sqlx::query_scalar(
            "with recursive step (account_id) as (
                 (select n.account_id from postrider_identity.notifications n
                   where n.announcement_id = $1 and n.account_id > $2
                   order by n.account_id limit 1)
                 union all
                 select (select n.account_id from postrider_identity.notifications n
                          where n.announcement_id = $1 and n.account_id > step.account_id
                          order by n.account_id limit 1)
                   from step where step.account_id is not null)
             select step.account_id
               from step
              where step.account_id is not null
                and (select e.is_primary from postrider_identity.email_addresses e
                      where e.account_id = step.account_id and e.is_primary)
                and ((select an.essential from postrider_identity.announcements an where an.id = $1)
                     or coalesce((select p.announcements from postrider_identity.email_preferences p
                                   where p.account_id = step.account_id), true))
              limit $3",
        )
        .bind(announcement)
        .bind(after.map_or(Uuid::nil(), |account| account.0))
        .bind(i64::from(limit))
        .fetch_all(connection)
        .await
    }

    async fn announcement(
        &self,
        connection: &mut PgConnection,
        announcement: AnnouncementId,
        account: AccountId,
    ) -> Result<Option<AnnouncementMail>, sqlx::Error> {
        let found: Option<AnnouncementRow> = sqlx::query_as(
            "select e.address, a.handle, an.subject, an.text, an.essential, n.id as notification
               from postrider_identity.notifications n
               join postrider_identity.announcements an on an.id = n.announcement_id
               join postrider_identity.accounts a on a.id = n.account_id
               join postrider_identity.email_addresses e on e.account_id = a.id and e.is_primary
               left join postrider_identity.email_preferences p on p.account_id = a.id
              where n.announcement_id = $1 and n.account_id = $2 and a.state = 'active'
                and (an.essential or coalesce(p.announcements, true))",
        )
        .bind(announcement)
        .bind(account)
        .fetch_optional(connection)
        .await?;
        Ok(found.map(AnnouncementRow::mail))
    }

    async fn unsubscribe(&self, connection: &mut PgConnection, account: AccountId) -> Result<(), sqlx::Error> {
        preferences::set_announcements(connection, account, false).await.map(|_| ())
    }
}

#[derive(sqlx::FromRow)]
struct LinkRow {
    address: String,
    handle: String,
    digest: Vec<u8>,
}

impl LinkRow {
    fn recipient(self) -> Result<LinkRecipient, sqlx::Error> {
        let token_digest = TokenDigest::from_bytes(&self.digest)
            .ok_or_else(|| sqlx::Error::Decode("a token's digest that is not 32 bytes".into()))?;
        Ok(LinkRecipient { address: self.address, handle: self.handle, token_digest })
    }
}

#[derive(sqlx::FromRow)]
struct RecoveryRow {
    #[sqlx(flatten)]
    to: LinkRow,
    expires_at: DateTime<Utc>,
}

impl RecoveryRow {
    fn recipient(self) -> Result<RecoveryRecipient, sqlx::Error> {
        Ok(RecoveryRecipient { to: self.to.recipient()?, expires_at: self.expires_at })
    }
}

#[derive(sqlx::FromRow)]
struct NotificationRow {
    account_id: AccountId,
    handle: String,
    created_at: DateTime<Utc>,
    kind: String,
    facts: serde_json::Value,
    undoable: Option<RecoveryId>,
}

#[derive(sqlx::FromRow)]
struct AnnouncementRow {
    address: String,
    handle: String,
    subject: String,
    text: String,
    essential: bool,
    notification: NotificationId,
}

impl AnnouncementRow {
    fn mail(self) -> AnnouncementMail {
        let Self { address, handle, subject, text, essential, notification } = self;
        AnnouncementMail { address, handle, subject, text, essential, notification }
    }
}
