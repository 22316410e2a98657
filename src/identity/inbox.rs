//! An account's inbox.

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::PgConnection;
use uuid::Uuid;

use super::notice::stored_notice;
use super::{AccountId, AnnouncementId, NotificationId, RecoveryId};
use crate::directory::Notice;

/// A notification in an inbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InboxEntry {
    /// Which.
    pub id: NotificationId,
    /// What it says.
    pub says: InboxText,
    /// When it was written.
    pub at: DateTime<Utc>,
    /// When it was read.
    pub read_at: Option<DateTime<Utc>>,
}

/// What a notification says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InboxText {
    /// Something about the account.
    Notice(Notice),
    /// An administrator's announcement.
    Announcement {
        /// Which.
        announcement: AnnouncementId,
        /// Its subject.
        subject: String,
        /// Its text, plain.
        text: String,
    },
    /// Written by a newer release, which can read it.
    OfANewerRelease,
}

#[derive(sqlx::FromRow)]
struct EntryRow {
    id: NotificationId,
    kind: String,
    facts: Value,
    created_at: DateTime<Utc>,
    read_at: Option<DateTime<Utc>>,
    undoable: Option<RecoveryId>,
    announcement: Option<AnnouncementId>,
    subject: Option<String>,
    text: Option<String>,
}

impl EntryRow {
    fn entry(self) -> InboxEntry {
        let says = match (self.announcement, self.subject, self.text) {
            (Some(announcement), Some(subject), Some(text)) => InboxText::Announcement { announcement, subject, text },
            _ => stored_notice(&self.kind, &self.facts, self.undoable)
                .map_or(InboxText::OfANewerRelease, InboxText::Notice),
        };
        InboxEntry { id: self.id, says, at: self.created_at, read_at: self.read_at }
    }
}

/// The account's notifications, the newest first, up to `limit` of them, beginning after `before`.
///
/// # Errors
/// The database.
pub async fn inbox(
    connection: &mut PgConnection,
    account: AccountId,
    before: Option<NotificationId>,
    limit: u32,
) -> Result<Vec<InboxEntry>, sqlx::Error> {
    let rows: Vec<EntryRow> = sqlx::query_as(
        "select n.id, n.kind, n.facts, n.created_at, n.read_at, r.id as undoable,
                an.id as announcement, an.subject, an.text
           from postrider_identity.notifications n
           left join postrider_identity.announcements an on an.id = n.announcement_id
           left join postrider_identity.recoveries r
             on n.kind = 'account_recovered' and r.id = (n.facts->>'recovery')::uuid
            and r.undo_until > statement_timestamp()
          where n.account_id = $1 and n.id < $2
          order by n.id desc
          limit $3",
    )
    .bind(account)
    .bind(before.map_or(Uuid::max(), |before| before.0))
    .bind(i64::from(limit))
    .fetch_all(connection)
    .await?;
    Ok(rows.into_iter().map(EntryRow::entry).collect())
}

/// Marks a notification of the account as read; true where it was not before.
///
/// # Errors
/// The database.
pub async fn mark_read(
    connection: &mut PgConnection,
    account: AccountId,
    notification: NotificationId,
) -> Result<bool, sqlx::Error> {
    let marked = sqlx::query(
        "update postrider_identity.notifications set read_at = statement_timestamp()
          where id = $1 and account_id = $2 and read_at is null",
    )
    .bind(notification)
    .bind(account)
    .execute(connection)
    .await?;
    Ok(marked.rows_affected() == 1)
}
