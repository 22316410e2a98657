//! An operator who cancels and retries while everything breaks.

use std::sync::Arc;
use std::time::Duration;

use postrider::queue::{OperateError, Operator, cancel, retry};
use postrider_actors::DeliveryId;
use serde::Serialize;
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, PgConnection};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::clock::Clock;
use crate::dice::Dice;
use crate::hosts::Fate;
use crate::record::Log;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub enum Kind {
    Retry,
    Cancel,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub enum Came {
    Done,
    Refused,
    Unknown,
}

#[derive(Debug, Clone, Serialize)]
pub struct Act {
    pub delivery: Uuid,
    pub kind: Kind,
    pub from: Duration,
    pub until: Duration,
    pub result: Came,
}

const PATIENCE: Duration = Duration::from_secs(4);

pub struct Desk {
    pub options: PgConnectOptions,
    pub clock: Clock,
    pub log: Arc<Log>,
}

impl Desk {
    /// Until it is told to stop.
    pub async fn work(&self, seed: u64, over: CancellationToken) {
        let mut dice = Dice::new(seed, 2);
        while !over.is_cancelled() {
            tokio::time::sleep(dice.millis(100, 400)).await;
            if dice.percent(50) {
                let recent = self.log.recent_commit(&mut dice);
                if let Some(commit) = recent.filter(|commit| commit.fate != Fate::RolledBack) {
                    self.act(Kind::Cancel, commit.delivery).await;
                }
            } else if let Some(delivery) = self.failed().await.first() {
                self.act(Kind::Retry, *delivery).await;
            }
        }
    }

    /// Retries all that has failed; says how many there were.
    pub async fn retry_all_failed(&self) -> usize {
        let failed = self.failed().await;
        for delivery in &failed {
            self.act(Kind::Retry, *delivery).await;
        }
        failed.len()
    }

    async fn connect(&self) -> Option<PgConnection> {
        tokio::time::timeout(PATIENCE, self.options.connect()).await.ok()?.ok()
    }

    async fn failed(&self) -> Vec<Uuid> {
        let Some(mut connection) = self.connect().await else { return Vec::new() };
        let failed =
            sqlx::query_scalar("select id from postrider.deliveries where status = 'failed' order by status_since");
        let failed = tokio::time::timeout(PATIENCE, failed.fetch_all(&mut connection)).await;
        failed.map(Result::unwrap_or_default).unwrap_or_default()
    }

    async fn act(&self, kind: Kind, delivery: Uuid) {
        let Some(mut connection) = self.connect().await else { return };
        let (from, by, id) = (self.clock.now(), Operator::new("chaos").unwrap(), DeliveryId::from_uuid(delivery));
        let done = tokio::time::timeout(PATIENCE, async {
            match kind {
                Kind::Retry => retry(&mut connection, id, &by).await,
                Kind::Cancel => cancel(&mut connection, id, &by).await,
            }
        });
        let result = match done.await {
            Ok(Ok(())) => Came::Done,
            Ok(Err(OperateError::NotFound(_) | OperateError::NotAllowed { .. })) => Came::Refused,
            Ok(Err(OperateError::Database(_))) | Err(_) => Came::Unknown,
        };
        self.log.act(Act { delivery, kind, from, until: self.clock.now(), result });
    }
}
