//! Hosts: transactions that record, and what each heard of its commit.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use postrider::Recorder;
use postrider_actors::DeliveryId;
use serde::Serialize;
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, Connection, PgConnection};
use uuid::Uuid;

use crate::channel::{Happened, recording};
use crate::clock::Clock;
use crate::dice::Dice;
use crate::record::Log;
use crate::settings::Size;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub enum Fate {
    Committed,
    RolledBack,
    /// The connection broke in the commit.
    Unknown,
}

/// One delivery of one transaction.
#[derive(Debug, Clone, Serialize)]
pub struct Commit {
    pub delivery: Uuid,
    pub channel: usize,
    pub key: Option<String>,
    /// Drawn while the key's ordering row is locked.
    pub place: u64,
    pub fate: Fate,
    pub at: Duration,
}

/// The longest a transaction may take.
const PATIENCE: Duration = Duration::from_secs(4);

pub struct Host {
    pub number: u64,
    pub options: PgConnectOptions,
    pub destination: String,
    pub clock: Clock,
    pub places: Arc<AtomicU64>,
    pub log: Arc<Log>,
}

impl Host {
    /// Spreads its transactions over the time of the storm.
    pub async fn run(self, size: Size) {
        let mut dice = Dice::new(size.seed, 100 + self.number);
        let recorder = Recorder::new(recording());
        let pause = u64::try_from(size.storm.as_millis()).unwrap() * 18 / 10 / size.transactions_per_host;
        let (mut connection, latest) = (None, self.clock.now() + size.storm * 2);
        for _ in 0..size.transactions_per_host {
            // A machine too busy for all of them must not hold the run up.
            if self.clock.now() > latest {
                return;
            }
            tokio::time::sleep(dice.millis(0, pause)).await;
            let key = dice.percent(75).then(|| format!("k{}", dice.below(size.keys)));
            let unordered = key.is_none() || dice.percent(20);
            let happened = Happened { key, unordered, text: dice.next(), destination: self.destination.clone() };
            let rolls_back = dice.percent(5);
            connection = self.transaction(connection, &recorder, &happened, rolls_back).await;
        }
    }

    /// Gives the connection back while it is good.
    async fn transaction(
        &self,
        connection: Option<PgConnection>,
        recorder: &Recorder,
        happened: &Happened,
        rolls_back: bool,
    ) -> Option<PgConnection> {
        let mut connection = match connection {
            Some(connection) => connection,
            None => tokio::time::timeout(PATIENCE, self.options.connect()).await.ok()?.ok()?,
        };
        let mut recorded: Option<(Vec<DeliveryId>, u64)> = None;
        let mut committing = false;
        let done = tokio::time::timeout(PATIENCE, async {
            let mut transaction = connection.begin().await?;
            let made = recorder.record(&mut transaction, happened).await.map_err(std::io::Error::other)?;
            recorded = Some((made.deliveries.clone(), self.places.fetch_add(1, Ordering::SeqCst)));
            if rolls_back {
                return transaction.rollback().await;
            }
            committing = true;
            transaction.commit().await
        })
        .await;
        let fate = match (&done, committing) {
            (_, false) => Fate::RolledBack,
            (Ok(Ok(())), true) => Fate::Committed,
            _ => Fate::Unknown,
        };
        if let Some((deliveries, place)) = recorded {
            let at = self.clock.now();
            let channels = happened.key.iter().map(|_| 0).chain(happened.unordered.then_some(1));
            for (channel, delivery) in channels.zip(deliveries) {
                let key = happened.key.clone().filter(|_| channel == 0);
                self.log.commit(Commit { delivery: delivery.as_uuid(), channel, key, place, fate, at });
            }
        }
        matches!(done, Ok(Ok(()))).then_some(connection)
    }
}
