//! What the queue says of the act's deliveries.

use postrider_actors::Status;
use serde_json::Value;
use sqlx::PgConnection;
use uuid::Uuid;

use super::expected::Kind;
use super::people::Person;
use crate::channels::{Announcement, AnnouncementPayload, Email, EmailMessage, EmailPayload};
use crate::content::Content;
use crate::identity::{AccountId, AnnouncementId};

/// What became of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MailDelivery {
    pub(super) id: Uuid,
    pub(super) kind: Kind,
    pub(super) account: AccountId,
    pub(super) status: Status,
    pub(super) attempts: u32,
    pub(super) last_error: Option<String>,
}

/// The announcements of the act, in the order in which they are sent.
pub(super) type Announced = Vec<(AnnouncementId, Kind)>;

#[derive(sqlx::FromRow)]
struct Row {
    id: Uuid,
    channel: String,
    owner: String,
    status: String,
    attempts: i32,
    last_error: Option<String>,
    payload: Value,
}

impl Row {
    fn delivery(self, announced: &Announced) -> Result<MailDelivery, sqlx::Error> {
        let kind = if self.channel == Email::channel_name().as_str() {
            kind_of_email(self.payload)
        } else {
            kind_of_announcement(self.payload, announced)
        };
        Ok(MailDelivery {
            id: self.id,
            kind: kind.unwrap_or(Kind::Other),
            account: AccountId(self.owner.parse().map_err(|error| sqlx::Error::Decode(Box::new(error)))?),
            status: self.status.parse().map_err(|error| sqlx::Error::Decode(Box::new(error)))?,
            attempts: self.attempts.unsigned_abs(),
            last_error: self.last_error,
        })
    }
}

fn kind_of_email(payload: Value) -> Option<Kind> {
    let EmailPayload { message, .. } = serde_json::from_value(payload).ok()?;
    Some(match message {
        EmailMessage::VerificationLink { .. } => Kind::VerificationLink,
        EmailMessage::RecoveryLink { .. } => Kind::RecoveryLink,
        EmailMessage::Notification { notice, .. } => match *notice {
            Content::AccountRecovered(_) => Kind::AccountRecovered,
            Content::AddressAdded(_) => Kind::AddressAdded,
            Content::AddressReplaced(_) => Kind::AddressReplaced,
            Content::PasskeyAdded(_) => Kind::PasskeyAdded,
            Content::NewSignIn(_) => Kind::NewSignIn,
            Content::Alert(_) => Kind::Alert,
            _ => Kind::Other,
        },
    })
}

fn kind_of_announcement(payload: Value, announced: &Announced) -> Option<Kind> {
    let AnnouncementPayload { announcement, .. } = serde_json::from_value(payload).ok()?;
    announced.iter().find(|(sent, _)| *sent == announcement).map(|(_, kind)| *kind)
}

fn mail_channels() -> Vec<String> {
    [Email::channel_name(), Announcement::channel_name()].map(|channel| channel.to_string()).to_vec()
}

/// Every delivery to these people.
pub(super) async fn deliveries(
    connection: &mut PgConnection,
    people: &[Person],
    announced: &Announced,
) -> Result<Vec<MailDelivery>, sqlx::Error> {
    let rows: Vec<Row> = sqlx::query_as(
        "select d.id, d.channel, d.owner, d.status, d.attempt as attempts, d.last_error, d.payload
           from postrider.deliveries d
          where d.channel = any($1) and d.owner = any($2)
          order by d.id",
    )
    .bind(mail_channels())
    .bind(people.iter().map(|person| person.account.to_string()).collect::<Vec<_>>())
    .fetch_all(connection)
    .await?;
    rows.into_iter().map(|row| row.delivery(announced)).collect()
}

/// Deliveries that are not at their end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pending {
    pub(super) all: usize,
    /// Of these, those whose last attempt came to nothing and is recorded.
    pub(super) tried: usize,
}

/// How many are pending, whoever they are for.
pub(super) async fn pending(connection: &mut PgConnection) -> Result<Pending, sqlx::Error> {
    let (all, tried): (i64, i64) = sqlx::query_as(
        "select count(*), count(*) filter (where d.last_error is not null)
           from postrider.deliveries d
          where d.channel = any($1) and d.status = 'pending'",
    )
    .bind(mail_channels())
    .fetch_one(connection)
    .await?;
    let number = |count: i64| usize::try_from(count).unwrap_or(0);
    Ok(Pending { all: number(all), tried: number(tried) })
}
