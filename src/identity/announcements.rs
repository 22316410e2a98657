//! Announcements: written, looked over, sent.

use sqlx::PgConnection;

use super::acts::{ActError, Acted, Missing};
use super::{AnnouncementId, AnnouncementSent};
use crate::recorder::Recorder;

/// The longest subject, in characters.
const MAX_SUBJECT: usize = 200;
/// The longest text, in bytes.
const MAX_TEXT: usize = 64 * 1024;

/// What an administrator wants to announce.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnnouncementDraft<'a> {
    /// One line.
    pub subject: &'a str,
    /// Plain text.
    pub text: &'a str,
    /// Goes also to those who opted out, and carries no unsubscribe link.
    pub essential: bool,
    /// Who writes it: a login name or the like.
    pub created_by: &'a str,
}

impl AnnouncementDraft<'_> {
    fn check(&self) -> Result<(), ActError> {
        let control = |allowed: &'static [char]| move |found: char| found.is_control() && !allowed.contains(&found);
        let subject = !self.subject.trim().is_empty()
            && self.subject.chars().count() <= MAX_SUBJECT
            && !self.subject.contains(control(&[]));
        let text = !self.text.trim().is_empty()
            && self.text.len() <= MAX_TEXT
            && !self.text.contains(control(&['\n', '\r', '\t']));
        let by = !self.created_by.is_empty() && !self.created_by.contains(control(&[]));
        if subject && text && by { Ok(()) } else { Err(ActError::Unfit) }
    }
}

/// Writes an announcement, sent to nobody yet.
///
/// # Errors
/// An empty or overlong subject or text, or the database.
pub async fn draft_announcement(
    connection: &mut PgConnection,
    draft: &AnnouncementDraft<'_>,
) -> Result<AnnouncementId, ActError> {
    draft.check()?;
    let announcement = AnnouncementId::generate();
    sqlx::query(
        "insert into postrider_identity.announcements (id, subject, text, essential, created_by)
         values ($1, $2, $3, $4, $5)",
    )
    .bind(announcement)
    .bind(draft.subject)
    .bind(draft.text)
    .bind(draft.essential)
    .bind(draft.created_by)
    .execute(connection)
    .await?;
    Ok(announcement)
}

/// Whom an announcement reaches, or would reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reach {
    /// Accounts whose inbox it is in: all that are active.
    pub recipients: u64,
    /// Of these, those without a primary address: it is in their inbox alone.
    pub without_address: u64,
    /// Of these, those with an address who opted out of what is not essential.
    pub opted_out: u64,
}

impl Reach {
    /// How many get it by e-mail.
    pub const fn mailed(&self) -> u64 {
        self.recipients - self.without_address - self.opted_out
    }
}

/// Whom the announcement would reach now, writing nothing.
///
/// # Errors
/// No such announcement, one that was sent, or the database.
pub async fn preview_announcement(
    connection: &mut PgConnection,
    announcement: AnnouncementId,
) -> Result<Reach, ActError> {
    let find = "select an.essential, an.sent_at is not null from postrider_identity.announcements an where an.id = $1";
    let essential = unsent(sqlx::query_as(find).bind(announcement).fetch_optional(&mut *connection).await?)?;
    let counts: (i64, i64, i64) = sqlx::query_as(
        "select count(*), count(*) filter (where e.id is null),
                count(*) filter (where e.id is not null and not p.announcements)
           from postrider_identity.accounts a
           left join postrider_identity.email_addresses e on e.account_id = a.id and e.is_primary
           left join postrider_identity.email_preferences p on p.account_id = a.id
          where a.state = 'active'",
    )
    .fetch_one(connection)
    .await?;
    Ok(reach(counts, essential))
}

/// Sends an announcement, once: writes it to the inbox of each active account, which stays active until the caller's
/// transaction ends, and records [`AnnouncementSent`]. `progress` hears how many e-mails are written so far.
///
/// The accounts are locked in the order of their ids. Commit soon: whoever changes one of them waits.
///
/// # Errors
/// No such announcement, one that was sent, or the database.
pub async fn send_announcement(
    connection: &mut PgConnection,
    recorder: &Recorder,
    announcement: AnnouncementId,
    progress: &mut (dyn FnMut(u64) + Send),
) -> Result<Acted<Reach>, ActError> {
    let lock = "select an.essential, an.sent_at is not null from postrider_identity.announcements an
                 where an.id = $1 for update";
    let essential = unsent(sqlx::query_as(lock).bind(announcement).fetch_optional(&mut *connection).await?)?;
    write_to_inboxes(&mut *connection, announcement).await?;
    sqlx::query("update postrider_identity.announcements set sent_at = statement_timestamp() where id = $1")
        .bind(announcement)
        .execute(&mut *connection)
        .await?;
    let reach = reach(count_written(&mut *connection, announcement).await?, essential);
    let recorded = recorder.record_reporting(connection, &AnnouncementSent { announcement }, progress).await?;
    Ok(Acted::new(reach, vec![recorded]))
}

/// In one statement, however many there are.
async fn write_to_inboxes(connection: &mut PgConnection, announcement: AnnouncementId) -> Result<(), sqlx::Error> {
    sqlx::query(
        "with recipients as materialized (
             select a.id from postrider_identity.accounts a where a.state = 'active' order by a.id for share)
         insert into postrider_identity.notifications (id, account_id, kind, announcement_id)
         select postrider_identity.uuid_v7(), r.id, 'announcement', $1 from recipients r",
    )
    .bind(announcement)
    .execute(connection)
    .await?;
    Ok(())
}

async fn count_written(
    connection: &mut PgConnection,
    announcement: AnnouncementId,
) -> Result<(i64, i64, i64), sqlx::Error> {
    sqlx::query_as(
        "select count(*), count(*) filter (where e.id is null),
                count(*) filter (where e.id is not null and not p.announcements)
           from postrider_identity.notifications n
           left join postrider_identity.email_addresses e on e.account_id = n.account_id and e.is_primary
           left join postrider_identity.email_preferences p on p.account_id = n.account_id
          where n.announcement_id = $1",
    )
    .bind(announcement)
    .fetch_one(connection)
    .await
}

/// Whether it is essential, where it is there and was not sent.
fn unsent(found: Option<(bool, bool)>) -> Result<bool, ActError> {
    match found {
        None => Err(ActError::NoSuch(Missing::Announcement)),
        Some((_, true)) => Err(ActError::AlreadySent),
        Some((essential, false)) => Ok(essential),
    }
}

fn reach((recipients, without_address, opted_out): (i64, i64, i64), essential: bool) -> Reach {
    Reach {
        recipients: recipients.unsigned_abs(),
        without_address: without_address.unsigned_abs(),
        opted_out: if essential { 0 } else { opted_out.unsigned_abs() },
    }
}
