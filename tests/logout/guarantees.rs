//! The guarantees of SPEC, by name, on the channel backchannel_logout.

use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use postrider::identity::delete_account;
use postrider::queue;
use postrider_actors::{ChildId, SenderIndex};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::receivers::Step;
use crate::support::eventually;
use crate::world::{SOON, World, token_of};

/// C31: a logout recorded with the deletion of everything it speaks of.
#[tokio::test(flavor = "multi_thread")]
async fn self_contained_deleting_account_session_and_client_later_changes_nothing() {
    let world = World::new().await;
    let receiver = world.answering(&["200 OK"]).await;
    world.register("rp", &receiver, "/").await;
    let session = world.session(&["rp"]).await;
    let mut transaction = world.database.pool().begin().await.unwrap();
    let revoked = delete_account(&mut transaction, &world.recorder(), world.account).await.unwrap();
    assert_eq!((revoked.sessions(), revoked.deliveries()), (1, 1));
    transaction.commit().await.unwrap();
    revoked.committed();
    world.execute("delete from postrider_identity.oidc_clients").await;
    let left: i64 = sqlx::query_scalar("select count(*) from postrider_identity.sessions")
        .fetch_one(world.database.pool())
        .await
        .unwrap();
    assert_eq!(left, 0);

    // Nothing polled before: as if the process had died right after the commit.
    let subsystem = world.start().await;
    world.becomes("rp", "succeeded").await;
    subsystem.shut_down().await;
    let (_, claims) = token_of(&receiver.seen()[0].request);
    assert_eq!(claims["sub"], world.account.0.to_string());
    assert_eq!(claims["sid"], session.0.to_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn c31_a_rolled_back_logout_is_never_sent_and_the_session_goes_on() {
    let world = World::new().await;
    let receiver = world.answering(&["200 OK"]).await;
    world.register("rp", &receiver, "/").await;
    let subsystem = world.start().await;
    let session = world.session(&["rp"]).await;
    let mut transaction = world.database.pool().begin().await.unwrap();
    assert_eq!(world.sign_out(&mut transaction, session).await, 1);
    transaction.rollback().await.unwrap();
    // A later one is delivered, so the earlier one had every chance.
    world.tell(&["rp"]).await;
    world.becomes("rp", "succeeded").await;
    subsystem.shut_down().await;
    assert_eq!(receiver.seen().len(), 1);
    assert_ne!(token_of(&receiver.seen()[0].request).1["sid"], session.0.to_string());
}

/// The worker dies after the receiver has read everything and before an outcome is recorded.
#[tokio::test(flavor = "multi_thread")]
async fn at_least_once_a_worker_that_dies_lets_the_lease_run_out_and_another_sends_under_the_same_id() {
    let world = World::new().await;
    let ok = Step::Send(crate::receivers::http("200 OK", &["Content-Length: 0"], ""));
    let receiver = world.receiver(vec![vec![Step::AwaitClose], vec![ok]]).await;
    world.register("rp", &receiver, "/").await;
    let subsystem = world.start().await;
    world.tell(&["rp"]).await;
    eventually(SOON, "the receiver has read the request", async || receiver.seen().len() == 1).await;
    for index in SenderIndex::BOTH {
        subsystem.kill(&ChildId::Sender(postrider::channels::BackchannelLogout::channel_name(), index));
    }
    receiver.client_gone().await;
    assert_eq!(world.row("rp").await.status, "pending");
    assert!(world.row("rp").await.leased_until.is_some());
    world.execute("update postrider.deliveries set due_at = due_at - interval '60 seconds'").await;
    let row = world.becomes("rp", "succeeded").await;
    subsystem.shut_down().await;
    assert_eq!(row.attempts, 2);
    let jtis: Vec<_> = receiver.seen().iter().map(|seen| token_of(&seen.request).1["jti"].clone()).collect();
    assert_eq!(jtis, [row.id.to_string(), row.id.to_string()], "a receiver can deduplicate");
}

#[tokio::test(flavor = "multi_thread")]
async fn operators_win_a_cancel_in_mid_attempt_discards_its_outcome() {
    let world = World::new().await;
    let ok = crate::receivers::http("200 OK", &["Content-Length: 0"], "");
    let receiver = world.receiver(vec![vec![Step::Trickle(ok, Duration::from_millis(40))]]).await;
    world.register("rp", &receiver, "/").await;
    let subsystem = world.start().await;
    world.tell(&["rp"]).await;
    eventually(SOON, "the receiver has read the request", async || receiver.seen().len() == 1).await;
    let id = postrider_actors::DeliveryId::from_uuid(world.row("rp").await.id);
    let by = queue::Operator::new("root@night").unwrap();
    queue::cancel(&mut world.database.connect().await, id, &by).await.unwrap();
    // The attempt goes on and succeeds; nobody notices but the log.
    eventually(SOON, "its slot is free again", async || {
        subsystem.health().tree.actors.iter().all(|actor| actor.in_flight == 0)
    })
    .await;
    let row = world.row("rp").await;
    assert_eq!((row.status.as_str(), row.attempts), ("cancelled", 1));
    let who: String =
        sqlx::query_scalar("select payload->>'by' from postrider.events where kind = 'delivery_cancelled'")
            .fetch_one(world.database.pool())
            .await
            .unwrap();
    assert_eq!(who, "root@night");

    queue::retry(&mut world.database.connect().await, id, &by).await.unwrap();
    let row = world.becomes("rp", "succeeded").await;
    assert_eq!(row.attempts, 2);
    subsystem.shut_down().await;
}

/// Everything that is logged, at every level.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// C59: an endpoint with a secret in its query, failing in every way; all of the product's tracing, and the rows.
#[tokio::test]
async fn never_secret_no_token_url_or_peers_text_in_rows_logs_and_metrics() {
    const SECRETS: [&str; 3] = ["SECRET123", "eyJ", "peer-text"];
    let log = Log::default();
    let writer = log.clone();
    let everything_of_ours = tracing_subscriber::filter::Targets::new()
        .with_target("postrider", tracing::Level::TRACE)
        .with_target("postrider_actors", tracing::Level::TRACE)
        .with_default(tracing::Level::INFO);
    let subscriber = tracing_subscriber::registry()
        .with(everything_of_ours)
        .with(tracing_subscriber::fmt::layer().with_ansi(false).with_writer(move || writer.clone()));
    let _subscriber = subscriber.set_default();
    let metrics = metrics_exporter_prometheus::PrometheusBuilder::new().install_recorder().unwrap();

    let world = World::new().await;
    let answer = crate::receivers::http("400 peer-text", &["Content-Length: 9", "X: peer-text"], "peer-text");
    let answering = world.receiver(vec![vec![Step::Send(answer)]]).await;
    let garbage = world.receiver(vec![vec![Step::Send(b"peer-text\r\n\r\n".to_vec())]]).await;
    let closing = world.receiver(vec![vec![]]).await;
    let secret = "/hook?token=SECRET123";
    world.register("answering", &answering, secret).await;
    world.register("garbage", &garbage, secret).await;
    world.register("closing", &closing, secret).await;
    let untrusted = crate::receivers::Receiver::answering(
        crate::receivers::Ca::new().certify(&["127.0.0.1"]),
        crate::receivers::http("200 OK", &[], ""),
    )
    .await;
    world.register("untrusted", &untrusted, secret).await;
    let clients = ["answering", "garbage", "closing", "untrusted", "nowhere", "private"];
    world
        .execute(
            "insert into postrider_identity.oidc_clients (id, name, backchannel_logout_uri) values
             ('nowhere', 'nowhere', 'https://nonexistent.invalid/hook?token=SECRET123'),
             ('private', 'private', 'https://10.0.0.1/hook?token=SECRET123')",
        )
        .await;
    let subsystem = world.start().await;
    world.tell(&clients).await;
    for (client, error) in clients.iter().zip(["400", "protocol", "connection", "tls", "dns", "refused_destination"]) {
        eventually(SOON, client, async || world.row(client).await.last_error.as_deref() == Some(error)).await;
    }
    subsystem.shut_down().await;

    let rows: Vec<String> =
        sqlx::query_scalar("select (d.payload::text || coalesce(d.last_error, '')) from postrider.deliveries d")
            .fetch_all(world.database.pool())
            .await
            .unwrap();
    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(log.contains("postrider"), "the log was captured");
    let metrics = metrics.render();
    assert!(
        metrics.contains(r#"postrider_deliveries_attempts_total{channel="backchannel_logout",outcome="failed"} 2"#)
    );
    for secret in SECRETS {
        assert!(rows.iter().all(|row| !row.contains(secret)), "{secret} in a row");
        assert!(!log.contains(secret), "{secret} in the log: {log}");
        assert!(!metrics.contains(secret), "{secret} in the metrics");
    }
    for client in clients {
        assert!(!metrics.contains(client), "a client is no label");
    }
}
