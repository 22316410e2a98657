//! Deliveries, caused as the host causes them.

use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use postrider::Recorder;
use postrider::channel::{Channel, Channels};
use postrider::channels::BackchannelLogout;
use postrider::identity::{
    NewClient, ReferenceDirectory, RevokedBy, Sessions, create_account, create_session, issue_code, redeem_code,
    register_client, revoke_sessions,
};
use postrider::outbound::{AddressPolicy, HttpsClient, HttpsConfig};
use postrider::signing::{SigningAlgorithm, SigningKey, SigningKeys};
use serde_json::Value;
use sqlx::{Connection, PgConnection};
use uuid::Uuid;

use crate::ca::Ca;
use crate::program::{Scratch, Serve, key};
use crate::receiver::{Receiver, Step, http};
use crate::support::TestDatabase;

pub const ISSUER: &str = "https://id.example.com/Tenant%20A";

fn loopback() -> AddressPolicy {
    AddressPolicy::allowing_networks_for_tests_and_demos(vec!["127.0.0.0/8".parse().unwrap()])
}

/// Records for the same channel as the program's, and wakes nobody: polling finds it.
fn recorder() -> Recorder {
    let keys = SigningKeys::new(vec![SigningKey::generate(SigningAlgorithm::Es256).unwrap()]).unwrap();
    let name_server = Some("127.0.0.1:9".parse().unwrap());
    let client = HttpsClient::new(HttpsConfig { name_server, ..HttpsConfig::default() }).unwrap();
    let channel = BackchannelLogout::new(Arc::new(ReferenceDirectory), client, ISSUER.to_owned(), keys);
    Recorder::new(Channels::new(vec![Arc::new(channel) as Arc<dyn Channel>]).unwrap())
}

/// Somebody signs out whose session has one client; returns the delivery to `uri`.
pub async fn sign_out(connection: &mut PgConnection, uri: &str) -> Uuid {
    let client = format!("client-{}", Uuid::new_v4().simple());
    let new = NewClient {
        id: &client,
        name: "A client",
        backchannel_logout_uri: Some(uri),
        session_required: true,
        algorithm: SigningAlgorithm::Es256,
    };
    let mut transaction = connection.begin().await.unwrap();
    register_client(&mut transaction, &new, &loopback()).await.unwrap();
    let account = create_account(&mut transaction, &client).await.unwrap();
    let session = create_session(&mut transaction, account).await.unwrap();
    issue_code(&mut transaction, client.as_bytes(), &client, session).await.unwrap();
    assert!(redeem_code(&mut transaction, client.as_bytes()).await.unwrap());
    let which = Sessions::One(session);
    let revoked = revoke_sessions(&mut transaction, &recorder(), which, RevokedBy::SignOut).await.unwrap();
    assert_eq!(revoked.deliveries(), 1);
    transaction.commit().await.unwrap();
    revoked.committed();
    let id = sqlx::query_scalar("select id from postrider.deliveries where owner = $1").bind(&client);
    id.fetch_one(connection).await.unwrap()
}

/// A delivery to where nobody is.
pub async fn waiting(database: &TestDatabase) -> Uuid {
    sign_out(&mut database.connect().await, "https://client.example.com/logout").await
}

pub async fn status(database: &TestDatabase, delivery: Uuid) -> String {
    let status = sqlx::query_scalar("select status from postrider.deliveries where id = $1").bind(delivery);
    status.fetch_one(database.pool()).await.unwrap()
}

/// A receiver and the arguments with which `serve` reaches it.
pub struct Receiving {
    pub receiver: Receiver,
    ca: Ca,
    key: String,
}

impl Receiving {
    pub async fn answering(scratch: &Scratch, steps: Vec<Step>) -> Self {
        let ca = Ca::new();
        let receiver = Receiver::start(ca.certify(&["127.0.0.1"]), steps).await;
        Self { receiver, ca, key: key(scratch).await }
    }

    /// Takes every logout.
    pub async fn content(scratch: &Scratch) -> Self {
        Self::answering(scratch, vec![Step::Send(http("200 OK", &["content-length: 0"], ""))]).await
    }

    pub fn uri(&self) -> String {
        format!("https://127.0.0.1:{}/logout", self.receiver.port())
    }

    /// Starts `serve` with what it needs for this receiver and further arguments.
    pub async fn serve(&self, scratch: &Scratch, further: &[&str]) -> Serve {
        let roots = self.ca.path().to_str().unwrap();
        let mut arguments = vec!["--issuer", ISSUER, "--signing-key", &self.key, "--extra-roots", roots];
        arguments.extend(["--name-server", "127.0.0.1:9", "--allow-network-for-tests-and-demos", "127.0.0.0/8"]);
        arguments.extend(further);
        Serve::start(scratch, &arguments).await
    }

    /// The claims of each logout token that came.
    pub fn claims(&self) -> Vec<Value> {
        self.receiver.seen().iter().map(|seen| claims(&seen.request)).collect()
    }
}

fn claims(request: &str) -> Value {
    let (_, token) = request.split_once("logout_token=").expect("the form field");
    let payload = token.split('.').nth(1).expect("a compact JWS");
    serde_json::from_slice(&BASE64_URL_SAFE_NO_PAD.decode(payload).unwrap()).unwrap()
}
