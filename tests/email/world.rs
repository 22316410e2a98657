//! A database, a local mailbox, and the mail channels over a directory.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use postrider::channels::{Announcement, Email};
use postrider::content::{Letterhead, Renderer};
use postrider::demo::mailbox::{Mailbox, Received};
use postrider::directory::Directory;
use postrider::links::{LinkKey, LinkKeys, Links, Pages};
use postrider::mail::smtp::{Relay, Smtp, SmtpConfig};
use postrider::mail::{self, EmailAddress, Mailer};
use postrider::queue::{self, DeliveryRow};
use postrider::{Channel, Channels, Event, Recorder, Subsystem, SubsystemConfig};
use postrider_actors::{Backoff, DeliveryId, EngineConfig};
use sqlx::PgConnection;

use crate::support::{self, TestDatabase, eventually};

pub const SOON: Duration = Duration::from_secs(20);
pub const PAGES: &str = "https://id.example";

pub struct World {
    pub database: TestDatabase,
    pub mailbox: Mailbox,
    pub links: Links,
    directory: Arc<dyn Directory>,
    channels: OnceLock<Channels>,
}

/// A key of these bytes.
pub fn key(byte: u8) -> LinkKey {
    LinkKey::from_bytes(&[byte; 32]).unwrap()
}

pub fn keys(bytes: &[u8]) -> LinkKeys {
    LinkKeys::new(&bytes.iter().copied().map(key).collect::<Vec<_>>()).unwrap()
}

impl World {
    pub async fn new(directory: Arc<dyn Directory>) -> Self {
        let links = Links { pages: Pages::new(PAGES).unwrap(), keys: keys(&[1]) };
        let (database, mailbox) = (support::database().await, Mailbox::start(None).await.unwrap());
        Self { database, mailbox, links, directory, channels: OnceLock::new() }
    }

    pub fn smtp(&self) -> Smtp {
        let relay = Relay::parse(&format!("smtp+plain://{}", self.mailbox.address())).unwrap();
        Smtp::new(SmtpConfig::new(vec![relay], "sender.example")).unwrap()
    }

    pub fn mailer(&self, smtp: Option<Smtp>) -> Mailer {
        let letterhead = Letterhead { service: "Example ID".into(), home: self.links.pages.home() };
        let address = EmailAddress::parse("no-reply@id.example").unwrap();
        let from = mail::Mailbox { name: Some("Example ID".into()), address };
        Mailer::new(from, Renderer::new(&letterhead).unwrap(), smtp)
    }

    /// Both mail channels, whose links are made with `links`.
    pub fn channels_with(&self, links: &Links, relay: bool) -> Channels {
        let mailer = || self.mailer(relay.then(|| self.smtp()));
        let email = Email::new(Arc::clone(&self.directory), links.clone(), mailer());
        let announcement = Announcement::new(Arc::clone(&self.directory), links.clone(), mailer());
        let channels: Vec<Arc<dyn Channel>> = vec![Arc::new(email), Arc::new(announcement)];
        Channels::new(channels).unwrap()
    }

    /// Both mail channels, made once.
    pub fn channels(&self) -> Channels {
        self.channels.get_or_init(|| self.channels_with(&self.links, true)).clone()
    }

    pub fn recorder(&self) -> Recorder {
        Recorder::new(self.channels())
    }

    /// The subsystem with waits short enough for a test.
    pub async fn start(&self) -> Subsystem {
        self.start_with(self.channels()).await
    }

    pub async fn start_with(&self, channels: Channels) -> Subsystem {
        let millis = Duration::from_millis;
        let engine = EngineConfig {
            backoff: Backoff { first: millis(50), cap: millis(50) },
            poll_interval: millis(50),
            slots_per_sender: 2.try_into().unwrap(),
            ..EngineConfig::default()
        };
        let config = SubsystemConfig { engine, ..SubsystemConfig::default() };
        Subsystem::spawn(self.database.options(), channels, config).await.unwrap()
    }

    pub async fn connect(&self) -> PgConnection {
        self.database.connect().await
    }

    /// Records an event in a transaction of its own; returns its deliveries.
    pub async fn record<E: Event>(&self, event: &E) -> Vec<DeliveryId> {
        let mut transaction = self.database.pool().begin().await.unwrap();
        let recorded = self.recorder().record(&mut transaction, event).await.unwrap();
        transaction.commit().await.unwrap();
        let deliveries = recorded.deliveries.clone();
        recorded.committed();
        deliveries
    }

    pub async fn row(&self, delivery: DeliveryId) -> DeliveryRow {
        let mut connection = self.database.pool().acquire().await.unwrap();
        queue::get(&mut connection, delivery).await.unwrap().expect("the delivery is there")
    }

    /// How many of a channel are in each status.
    pub async fn counts(&self, channel: &str) -> BTreeMap<String, i64> {
        let counts = "select status, count(*) from postrider.deliveries where channel = $1 group by status";
        let counts: Vec<(String, i64)> =
            sqlx::query_as(counts).bind(channel).fetch_all(self.database.pool()).await.unwrap();
        counts.into_iter().collect()
    }

    /// Runs the subsystem until nothing is pending.
    pub async fn deliver(&self) {
        let subsystem = self.start().await;
        self.settled().await;
        subsystem.shut_down().await;
    }

    /// Waits until nothing is pending.
    pub async fn settled(&self) {
        eventually(SOON, "nothing is pending", async || {
            let pending = "select not exists (select from postrider.deliveries where status = 'pending')";
            sqlx::query_scalar(pending).fetch_one(self.database.pool()).await.unwrap()
        })
        .await;
    }

    /// The one message for this address.
    pub fn only_mail(&self, address: &str) -> Mail {
        let received = self.mailbox.received_by(address);
        assert_eq!(received.len(), 1, "messages for {address}");
        Mail::read(&received[0])
    }
}

/// A message, and the plain text of its body.
#[derive(Debug)]
pub struct Mail {
    received: Received,
    pub text: String,
}

impl Mail {
    pub fn read(received: &Received) -> Self {
        let text = received.plain_text().expect("a plain text");
        Self { received: received.clone(), text }
    }

    pub fn field(&self, name: &str) -> Option<String> {
        self.received.field(name)
    }
}
