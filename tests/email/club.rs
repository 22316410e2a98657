//! A host with tables of its own, nothing like the reference domain's: a club whose members have one address each. Its
//! `Directory` is all that Postrider needs to know of it.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use postrider::directory::{
    Addressee, AnnouncementMail, Directory, LinkRecipient, Notice, NotificationMail, RecoveryRecipient,
};
use postrider::identity::{AccountId, AddressId, AnnouncementId, NotificationId, RecoveryId};
use postrider::links::TokenDigest;
use sqlx::PgConnection;
use uuid::Uuid;

const TABLES: &str = "
    create table members (
        id bigint primary key generated always as identity, number uuid unique not null, name text not null,
        mail text not null, mail_is_theirs boolean not null default false, link bytea,
        expelled boolean not null default false, newsletter boolean not null default true
    );
    create table resets (
        number uuid primary key, member uuid not null references members (number), link bytea not null,
        ends_at timestamptz not null default now() + interval '1 hour', used boolean not null default false
    );
    create table letters (
        number uuid primary key, member uuid not null references members (number), about text not null,
        body text not null, written_at timestamptz not null default now(), newsletter uuid
    );
    create table newsletters (number uuid primary key, title text not null, body text not null, urgent boolean not null)";

/// The club's side of the bargain.
pub struct Club;

impl Club {
    pub async fn found(connection: &mut PgConnection) {
        sqlx::raw_sql(TABLES).execute(connection).await.unwrap();
    }

    /// A member whose address is known to be theirs.
    pub async fn join(connection: &mut PgConnection, name: &str, mail: &str) -> AccountId {
        let number = Uuid::new_v4();
        sqlx::query("insert into members (number, name, mail, mail_is_theirs) values ($1, $2, $3, true)")
            .bind(number)
            .bind(name)
            .bind(mail)
            .execute(connection)
            .await
            .unwrap();
        AccountId(number)
    }
}

fn digest(bytes: &[u8]) -> Result<TokenDigest, sqlx::Error> {
    TokenDigest::from_bytes(bytes).ok_or_else(|| sqlx::Error::Decode("no digest".into()))
}

#[async_trait]
impl Directory for Club {
    async fn verification(
        &self,
        connection: &mut PgConnection,
        account: AccountId,
        _: AddressId,
    ) -> Result<Option<LinkRecipient>, sqlx::Error> {
        let found: Option<(String, String, Vec<u8>)> = sqlx::query_as(
            "select name, mail, link from members where number = $1 and not mail_is_theirs and not expelled",
        )
        .bind(account)
        .fetch_optional(connection)
        .await?;
        let recipient = |(handle, address, link): (String, String, Vec<u8>)| {
            Ok(LinkRecipient { address, handle, token_digest: digest(&link)? })
        };
        found.map(recipient).transpose()
    }

    async fn recovery(
        &self,
        connection: &mut PgConnection,
        recovery: RecoveryId,
        _: AddressId,
    ) -> Result<Option<RecoveryRecipient>, sqlx::Error> {
        let found: Option<(String, String, Vec<u8>, DateTime<Utc>)> = sqlx::query_as(
            "select m.name, m.mail, r.link, r.ends_at from resets r join members m on m.number = r.member
              where r.number = $1 and not r.used and r.ends_at > now() and not m.expelled",
        )
        .bind(recovery)
        .fetch_optional(connection)
        .await?;
        let Some((handle, address, link, expires_at)) = found else { return Ok(None) };
        let to = LinkRecipient { address, handle, token_digest: digest(&link)? };
        Ok(Some(RecoveryRecipient { to, expires_at }))
    }

    async fn notification(
        &self,
        connection: &mut PgConnection,
        notification: NotificationId,
    ) -> Result<Option<NotificationMail>, sqlx::Error> {
        let found: Option<(Uuid, String, String, DateTime<Utc>, String, String)> = sqlx::query_as(
            "select m.number, m.name, m.mail, l.written_at, l.about, l.body
               from letters l join members m on m.number = l.member where l.number = $1",
        )
        .bind(notification)
        .fetch_optional(connection)
        .await?;
        Ok(found.map(|(member, handle, address, at, title, text)| NotificationMail {
            account: AccountId(member),
            handle,
            at,
            notice: Notice::Alert { title, text },
            addressees: vec![Addressee { address_id: AddressId(member), address }],
        }))
    }

    async fn announcement_recipients(
        &self,
        connection: &mut PgConnection,
        announcement: AnnouncementId,
        after: Option<AccountId>,
        limit: u32,
    ) -> Result<Vec<AccountId>, sqlx::Error> {
        sqlx::query_scalar(
            "select m.number from members m, newsletters n
              where n.number = $1 and ($2 is null or m.number > $2) and m.mail_is_theirs and not m.expelled
                and (n.urgent or m.newsletter)
              order by m.number limit $3",
        )
        .bind(announcement)
        .bind(after)
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
        let found: Option<(String, String, String, String, bool)> = sqlx::query_as(
            "select m.name, m.mail, n.title, n.body, n.urgent from members m, newsletters n
              where n.number = $1 and m.number = $2 and m.mail_is_theirs and not m.expelled and (n.urgent or m.newsletter)",
        )
        .bind(announcement)
        .bind(account)
        .fetch_optional(connection)
        .await?;
        Ok(found.map(|(handle, address, subject, text, essential)| AnnouncementMail {
            address,
            handle,
            subject,
            text,
            essential,
            notification: NotificationId(announcement.0),
        }))
    }

    async fn unsubscribe(&self, connection: &mut PgConnection, account: AccountId) -> Result<(), sqlx::Error> {
        sqlx::query("update members set newsletter = false where number = $1")
            .bind(account)
            .execute(connection)
            .await?;
        Ok(())
    }
}
