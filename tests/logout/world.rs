//! An identity provider with one account, a database and a subsystem of its own.

use std::sync::Arc;
use std::time::Duration;

use postrider::channels::BackchannelLogout;
use postrider::identity::{
    AccountId, NewClient, ReferenceDirectory, RevokedBy, SessionId, Sessions, create_account, create_session,
    issue_code, redeem_code, register_client, revoke_sessions,
};
use postrider::outbound::HttpsClient;
use postrider::queue::{self, DeliveryRow, Listing};
use postrider::signing::{SigningAlgorithm, SigningKey, SigningKeys};
use postrider::{Channel, Channels, Recorder, Subsystem, SubsystemConfig};
use postrider_actors::{Backoff, EngineConfig};
use serde_json::Value;
use sqlx::PgConnection;

use crate::receivers::{Ca, Receiver, Step, config, http, loopback};
use crate::support::{self, TestDatabase, eventually};

pub const ISSUER: &str = "https://idp.example";
pub const SOON: Duration = Duration::from_secs(20);

pub struct World {
    /// Of ID tokens and logout tokens.
    pub issuer: String,
    pub database: TestDatabase,
    pub ca: Ca,
    pub keys: SigningKeys,
    pub account: AccountId,
}

impl World {
    pub async fn new() -> Self {
        let database = support::database().await;
        let key = |algorithm| SigningKey::generate(algorithm).unwrap();
        let keys = SigningKeys::new(vec![key(SigningAlgorithm::Es256), key(SigningAlgorithm::EdDsa)]).unwrap();
        let account = create_account(&mut database.connect().await, "alice").await.unwrap();
        Self { issuer: ISSUER.into(), database, ca: Ca::new(), keys, account }
    }

    pub fn channel(&self) -> BackchannelLogout {
        let client = HttpsClient::new(config(&self.ca)).unwrap();
        BackchannelLogout::new(Arc::new(ReferenceDirectory), client, self.issuer.clone(), self.keys.clone())
    }

    fn channels(&self) -> Channels {
        Channels::new(vec![Arc::new(self.channel()) as Arc<dyn Channel>]).unwrap()
    }

    pub fn recorder(&self) -> Recorder {
        Recorder::new(self.channels())
    }

    /// With waits short enough for a test; `send_timeout` as the test says.
    pub async fn start_within(&self, send_timeout: Duration) -> Subsystem {
        let millis = Duration::from_millis;
        let engine = EngineConfig {
            send_timeout,
            backoff: Backoff { first: millis(50), cap: millis(50) },
            poll_interval: millis(50),
            slots_per_sender: 4.try_into().unwrap(),
            ..EngineConfig::default()
        };
        let config = SubsystemConfig { engine, ..SubsystemConfig::default() };
        Subsystem::spawn(self.database.options(), self.channels(), config).await.unwrap()
    }

    pub async fn start(&self) -> Subsystem {
        self.start_within(Duration::from_secs(10)).await
    }

    pub async fn receiver(&self, scripts: Vec<Vec<Step>>) -> Receiver {
        Receiver::scripted(self.ca.certify(&["127.0.0.1"]), scripts).await
    }

    /// One that answers each request with the next of these statuses, and the last for ever.
    pub async fn answering(&self, statuses: &[&str]) -> Receiver {
        let answer = |status: &&str| vec![Step::Send(http(status, &["Content-Length: 0"], ""))];
        self.receiver(statuses.iter().map(answer).collect()).await
    }

    pub async fn register(&self, id: &str, receiver: &Receiver, path: &str) {
        self.register_signed(id, receiver, path, SigningAlgorithm::Es256).await;
    }

    pub async fn register_signed(&self, id: &str, receiver: &Receiver, path: &str, algorithm: SigningAlgorithm) {
        let uri = format!("https://127.0.0.1:{}{path}", receiver.port());
        let backchannel_logout_uri = Some(uri.as_str());
        let client = NewClient { id, name: id, backchannel_logout_uri, session_required: true, algorithm };
        register_client(&mut self.database.connect().await, &client, &loopback()).await.unwrap();
    }

    /// A session from which these clients have tokens.
    pub async fn session(&self, clients: &[&str]) -> SessionId {
        let mut connection = self.database.connect().await;
        let session = create_session(&mut connection, self.account).await.unwrap();
        for client in clients {
            let digest = format!("{}-{client}", session.0);
            issue_code(&mut connection, digest.as_bytes(), client, session).await.unwrap();
            assert!(redeem_code(&mut connection, digest.as_bytes()).await.unwrap());
            assert!(!redeem_code(&mut connection, digest.as_bytes()).await.unwrap(), "a code is redeemed once");
        }
        session
    }

    /// Signs out of the session, within whatever transaction the connection is in.
    pub async fn sign_out(&self, connection: &mut PgConnection, session: SessionId) -> usize {
        let which = Sessions::One(session);
        let revoked = revoke_sessions(connection, &self.recorder(), which, RevokedBy::SignOut).await.unwrap();
        let deliveries = revoked.deliveries();
        revoked.committed();
        deliveries
    }

    /// Signs out of a session of these clients' own, committed.
    pub async fn tell(&self, clients: &[&str]) -> SessionId {
        let session = self.session(clients).await;
        assert_eq!(self.sign_out(&mut self.database.connect().await, session).await, clients.len());
        session
    }

    pub async fn rows(&self) -> Vec<DeliveryRow> {
        let mut connection = self.database.pool().acquire().await.unwrap();
        queue::list(&mut connection, &Listing { status: None, channel: None, limit: 1000 }).await.unwrap()
    }

    pub async fn row(&self, client: &str) -> DeliveryRow {
        let rows = self.rows().await;
        let mut mine = rows.into_iter().filter(|row| row.owner == client);
        let row = mine.next().unwrap();
        assert!(mine.next().is_none(), "one delivery of {client} expected");
        row
    }

    pub async fn becomes(&self, client: &str, status: &str) -> DeliveryRow {
        let what = format!("the delivery to {client} becomes {status}");
        eventually(SOON, &what, async || self.row(client).await.status == status).await;
        self.row(client).await
    }

    pub async fn execute(&self, statement: &'static str) {
        sqlx::raw_sql(statement).execute(self.database.pool()).await.unwrap();
    }
}

/// Header and claims of the token in a request's form.
pub fn token_of(request: &str) -> (Value, Value) {
    use base64::Engine;
    let (_, body) = request.split_once("\r\n\r\n").unwrap();
    let token = body.strip_prefix("logout_token=").unwrap();
    let part = |index: usize| {
        let bytes = base64::prelude::BASE64_URL_SAFE_NO_PAD.decode(token.split('.').nth(index).unwrap()).unwrap();
        serde_json::from_slice(&bytes).unwrap()
    };
    (part(0), part(1))
}
