//! The queue on PostgreSQL as a harness of the law suite.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use postrider::channel::{Channel, Channels};
use postrider::queue::{self, Effect, EffectFailed, OperateError, Operator, PgQueue, Reads};
use postrider::{Event, NewDelivery, Occurred, RecordError, Recorder};
use postrider_actors::laws::{Harness, Look, Wish, channel_named};
use postrider_actors::{Attempted, ChannelName, DeliveryId, Lease, Outcome, Transport};
use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, PgConnection, PgPool};

use crate::support::{self, TestDatabase};

/// An event that asks for deliveries by itself.
#[derive(Debug)]
pub struct Wished(pub Vec<Wish>);

impl serde::Serialize for Wished {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(self.0.len() as u64)
    }
}

impl Event for Wished {
    const KIND: &'static str = "wished";
}

/// A channel that records what is wished of it, and is never sent by.
pub struct Wishing(pub ChannelName);

#[async_trait]
impl Channel for Wishing {
    fn name(&self) -> ChannelName {
        self.0.clone()
    }

    fn max_age(&self) -> Duration {
        Duration::from_secs(3600)
    }

    async fn deliveries(
        &self,
        _connection: &mut PgConnection,
        event: &Occurred<'_>,
    ) -> Result<Vec<NewDelivery>, RecordError> {
        let wishes = event.of::<Wished>().map(|wished| wished.0.as_slice()).unwrap_or_default();
        let mine = wishes.iter().filter(|wish| wish.channel == self.0);
        mine.map(|wish| {
            let delivery = NewDelivery::new("owner", "destination", &serde_json::json!({}))?;
            Ok(match &wish.ordering_key {
                Some(key) => delivery.ordered_by(key.as_str())?,
                None => delivery,
            })
        })
        .collect()
    }

    fn transport(&self, _: &Reads) -> Arc<dyn Transport<Effect>> {
        Arc::new(Nobody)
    }
}

struct Nobody;

#[async_trait]
impl Transport<Effect> for Nobody {
    async fn attempt(&self, _lease: &Lease) -> Attempted<Effect> {
        Outcome::Succeeded.into()
    }
}

pub fn recorder() -> Recorder {
    let channels = ["laws", "other", "quiet", "uncounted"].map(|name| Wishing(channel_named(name).name));
    Recorder::new(Channels::new(channels.into_iter().map(|one| Arc::new(one) as Arc<dyn Channel>).collect()).unwrap())
}

pub fn operator() -> Operator {
    Operator::new("a test").unwrap()
}

pub struct Postgres {
    pub database: TestDatabase,
    pub queue: Arc<PgQueue>,
}

pub async fn postgres() -> Postgres {
    let database = support::database().await;
    sqlx::query("create table marks ()").execute(database.pool()).await.unwrap();
    let pool = pool(database.options());
    Postgres { queue: Arc::new(PgQueue::new(pool)), database }
}

pub fn pool(options: PgConnectOptions) -> PgPool {
    let pool = queue::pool_options(Duration::from_secs(5)).max_connections(8).acquire_timeout(Duration::from_secs(2));
    pool.connect_lazy_with(queue::connect_options(options))
}

/// Moves every time in the queue back, which is the same as its clock going forward. Keys that an open transaction holds
/// are left out. It touches all rows at once, which the product never does, so it may have to try again.
pub async fn let_pass(pool: &PgPool, time: Duration) {
    let micros = i64::try_from(time.as_micros()).unwrap();
    while let Err(error) = try_let_pass(pool, micros).await {
        let deadlock = error.as_database_error().is_some_and(|error| error.code().as_deref() == Some("40P01"));
        assert!(deadlock, "{error:?}");
    }
}

async fn try_let_pass(pool: &PgPool, micros: i64) -> Result<(), sqlx::Error> {
    let mut transaction = pool.begin().await?;
    for statement in [
        "update postrider.deliveries set status_since = status_since - $1 * interval '1 microsecond',
            due_at = due_at - $1 * interval '1 microsecond', ready_at = ready_at - $1 * interval '1 microsecond',
            created_at = created_at - $1 * interval '1 microsecond'",
        "update postrider.delivery_orderings set held_until = held_until - $1 * interval '1 microsecond'
          where (channel, ordering_key) in (
                select channel, ordering_key from postrider.delivery_orderings for update skip locked)",
        "update postrider.delivery_releases set held_until = held_until - $1 * interval '1 microsecond'",
    ] {
        sqlx::query(statement).bind(micros).execute(&mut *transaction).await?;
    }
    transaction.commit().await
}

fn allowed(done: Result<(), OperateError>) -> bool {
    match done {
        Ok(()) => true,
        Err(OperateError::NotFound(_) | OperateError::NotAllowed { .. }) => false,
        Err(error) => panic!("{error:?}"),
    }
}

impl Harness for Postgres {
    type Queue = PgQueue;

    fn queue(&self) -> Arc<PgQueue> {
        Arc::clone(&self.queue)
    }

    async fn record(&self, wishes: Vec<Wish>) -> Vec<DeliveryId> {
        let mut transaction = self.database.pool().begin().await.unwrap();
        let recorded = recorder().record(&mut transaction, &Wished(wishes)).await.unwrap();
        transaction.commit().await.unwrap();
        recorded.deliveries
    }

    async fn let_pass(&self, time: Duration) {
        let_pass(self.database.pool(), time).await;
    }

    async fn look(&self, delivery: DeliveryId) -> Option<Look> {
        let mut connection = self.database.pool().acquire().await.unwrap();
        let row = queue::get(&mut connection, delivery).await.unwrap()?;
        Some(Look {
            status: row.status.parse().unwrap(),
            attempts: u32::try_from(row.attempts).unwrap(),
            last_error: row.last_error.map(|error| error.parse().unwrap()),
        })
    }

    async fn retry(&self, delivery: DeliveryId) -> bool {
        let mut connection = self.database.pool().acquire().await.unwrap();
        allowed(queue::retry(&mut connection, delivery, &operator()).await)
    }

    async fn cancel(&self, delivery: DeliveryId) -> bool {
        let mut connection = self.database.pool().acquire().await.unwrap();
        allowed(queue::cancel(&mut connection, delivery, &operator()).await)
    }

    fn effect(&self, fails: bool) -> Effect {
        Effect::new(move |connection| {
            Box::pin(async move {
                sqlx::query("insert into marks default values").execute(&mut *connection).await?;
                if fails {
                    return Err(EffectFailed::from(sqlx::Error::RowNotFound));
                }
                Ok(())
            })
        })
    }

    async fn marks(&self) -> usize {
        let count: i64 =
            sqlx::query_scalar("select count(*) from marks").fetch_one(self.database.pool()).await.unwrap();
        usize::try_from(count).unwrap()
    }

    async fn set_reachable(&self, reachable: bool) {
        let mut elsewhere = self.database.options().database("postgres").connect().await.unwrap();
        let name = self.database.name();
        let allow = format!("alter database {name} with allow_connections {reachable}");
        sqlx::query(AssertSqlSafe(allow)).execute(&mut elsewhere).await.unwrap();
        if !reachable {
            sqlx::query("select pg_terminate_backend(pid) from pg_stat_activity where datname = $1")
                .bind(name)
                .execute(&mut elsewhere)
                .await
                .unwrap();
        }
        elsewhere.close().await.unwrap();
    }
}
