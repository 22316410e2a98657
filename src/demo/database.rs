//! The demo's own connection: the schema, what earlier demos left, and what became of this one's deliveries.

use postrider_actors::{DeliveryId, Status};
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, Connection, PgConnection};
use uuid::Uuid;

use super::DemoError;
use super::domain::CLIENT_PREFIX;
use crate::channels::{BackchannelLogout, policies};
use crate::queue::{Operator, cancel};

/// Taken for a demo's time, so that no two send each other's deliveries ("demo" in ASCII).
const LOCK: i64 = 0x6465_6d6f;

/// Brings the schema up to date, on a connection that is closed afterwards.
pub(super) async fn migrate(database: &PgConnectOptions) -> Result<(), DemoError> {
    let mut connection = crate::pooler::connect_to_session(database).await?;
    let migrated = crate::queue::migrate(&mut connection).await;
    let _ = connection.close().await; // the server notices
    Ok(migrated?)
}

/// A connection that holds the demo's lock until it is closed.
pub(super) async fn connect(database: &PgConnectOptions) -> Result<PgConnection, DemoError> {
    let mut connection = database.connect().await.map_err(DemoError::Unreachable)?;
    let locked: bool =
        sqlx::query_scalar("select pg_try_advisory_lock($1)").bind(LOCK).fetch_one(&mut connection).await?;
    if locked { Ok(connection) } else { Err(DemoError::AnotherRuns) }
}

/// Takes away what earlier demos left: cancels what is pending, whose receivers are gone, and ends their accounts.
/// Says how many deliveries it cancelled. Refuses a database with anybody else's deliveries or accounts: the demo's
/// actors would send them, and its announcements reach everybody.
pub(super) async fn clear_leftovers(connection: &mut PgConnection) -> Result<usize, DemoError> {
    let pending = pending(connection).await?;
    let foreign = pending.iter().filter(|(_, own)| !own).count();
    if foreign > 0 {
        return Err(DemoError::NotItsOwn(foreign));
    }
    let foreign = foreign_accounts(connection).await?;
    if foreign > 0 {
        return Err(DemoError::NotItsOwnAccounts(foreign));
    }
    if let Some(demo) = Operator::new("demo") {
        for (id, _) in &pending {
            cancel(&mut *connection, DeliveryId::from_uuid(*id), &demo).await?;
        }
    }
    end_accounts(connection).await?;
    Ok(pending.len())
}

/// Closes the accounts of earlier demos, so that no announcement reaches them; those that never had a session, which are
/// those with addresses, are deleted, so that this demo's may be called the same.
async fn end_accounts(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    for statement in [
        "delete from postrider_identity.accounts a
          where starts_with(a.handle, $1)
            and not exists (select from postrider_identity.sessions s where s.account_id = a.id)",
        "update postrider_identity.accounts a set state = 'closed'
          where starts_with(a.handle, $1) and a.state = 'active'",
    ] {
        sqlx::query(statement).bind(CLIENT_PREFIX).execute(&mut *connection).await?;
    }
    Ok(())
}

/// What is pending in the demo's channels, and whether it is a demo's: to a client or an account of one.
async fn pending(connection: &mut PgConnection) -> Result<Vec<(Uuid, bool)>, sqlx::Error> {
    sqlx::query_as(
        "select d.id, starts_with(d.owner, $2) or coalesce(starts_with(a.handle, $2), false)
           from postrider.deliveries d
           left join postrider_identity.accounts a on a.id::text = d.owner
          where d.channel = any($1) and d.status = 'pending'",
    )
    .bind(policies().map(|policy| policy.name.to_string()).to_vec())
    .bind(CLIENT_PREFIX)
    .fetch_all(connection)
    .await
}

/// How many active accounts are nobody's of any demo.
async fn foreign_accounts(connection: &mut PgConnection) -> Result<usize, sqlx::Error> {
    let count: i64 = sqlx::query_scalar(
        "select count(*) from postrider_identity.accounts a where a.state = 'active' and not starts_with(a.handle, $1)",
    )
    .bind(CLIENT_PREFIX)
    .fetch_one(connection)
    .await?;
    Ok(usize::try_from(count).unwrap_or(usize::MAX))
}

/// What became of one delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Delivery {
    pub(super) id: Uuid,
    /// Whose: a position in the list of clients that was asked for.
    pub(super) role: usize,
    pub(super) sid: Option<Uuid>,
    pub(super) status: Status,
    pub(super) attempts: u32,
    pub(super) last_error: Option<String>,
}

#[derive(sqlx::FromRow)]
struct DeliveryRow {
    id: Uuid,
    role: i64,
    sid: Option<String>,
    status: String,
    attempts: i32,
    last_error: Option<String>,
}

impl DeliveryRow {
    fn delivery(self) -> Result<Delivery, sqlx::Error> {
        Ok(Delivery {
            id: self.id,
            role: usize::try_from(self.role).map_err(|error| sqlx::Error::Decode(Box::new(error)))?,
            sid: self.sid.and_then(|sid| Uuid::try_parse(&sid).ok()),
            status: self.status.parse().map_err(|error| sqlx::Error::Decode(Box::new(error)))?,
            attempts: self.attempts.unsigned_abs(),
            last_error: self.last_error,
        })
    }
}

/// Every delivery of these clients.
pub(super) async fn deliveries(connection: &mut PgConnection, clients: &[String]) -> Result<Vec<Delivery>, DemoError> {
    let rows: Vec<DeliveryRow> = sqlx::query_as(
        "select d.id, c.position - 1 as role, d.payload ->> 'sid' as sid, d.status, d.attempt as attempts, d.last_error
           from unnest($2::text[]) with ordinality as c (id, position)
           join postrider.deliveries d on d.owner = c.id and d.channel = $1
          order by d.id",
    )
    .bind(BackchannelLogout::channel_name().as_str())
    .bind(clients)
    .fetch_all(connection)
    .await?;
    Ok(rows.into_iter().map(DeliveryRow::delivery).collect::<Result<_, _>>()?)
}
