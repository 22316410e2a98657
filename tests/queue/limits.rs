//! What may be recorded: everything else is refused before any SQL, so that the host's transaction is still good.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use postrider::channel::{Channel, Channels};
use postrider::delivery::{MAX_KEY_BYTES, MAX_PAYLOAD_BYTES};
use postrider::queue::{Effect, Reads};
use postrider::{Event, InvalidDelivery, NewDelivery, Occurred, RecordError, Recorder};
use postrider_actors::laws::{Harness, channel, channel_named, wishes};
use postrider_actors::{ChannelName, ConfigError, Queue, Search, Transport};
use serde_json::json;
use sqlx::PgConnection;

use crate::harness::{Wished, Wishing, postgres, recorder};
use crate::support;

#[derive(serde::Serialize)]
struct Noted {
    note: String,
}

impl Event for Noted {
    const KIND: &'static str = "noted";
}

/// Makes one delivery of each note: payload, owner, destination and key as the test says.
struct Noting(fn(&str) -> Result<NewDelivery, InvalidDelivery>);

#[async_trait]
impl Channel for Noting {
    fn name(&self) -> ChannelName {
        channel_named("noting").name
    }

    fn max_age(&self) -> Duration {
        Duration::from_secs(3600)
    }

    async fn deliveries(
        &self,
        _connection: &mut PgConnection,
        event: &Occurred<'_>,
    ) -> Result<Vec<NewDelivery>, RecordError> {
        let note = event.of::<Noted>().map(|noted| noted.note.as_str()).unwrap_or_default();
        Ok(vec![(self.0)(note)?])
    }

    fn transport(&self, reads: &Reads) -> Arc<dyn Transport<Effect>> {
        Wishing(self.name()).transport(reads)
    }
}

/// Records a note within a transaction that goes on afterwards, and says what came of it.
async fn record(note: &str, make: fn(&str) -> Result<NewDelivery, InvalidDelivery>) -> Result<(), RecordError> {
    let database = support::database().await;
    let recorder = Recorder::new(Channels::new(vec![Arc::new(Noting(make))]).unwrap());
    let mut transaction = database.pool().begin().await.unwrap();
    let recorded = recorder.record(&mut transaction, &Noted { note: note.into() }).await;
    let count = "select count(*) from postrider.events";
    let events: i64 = sqlx::query_scalar(count).fetch_one(&mut *transaction).await.expect("still a good transaction");
    assert_eq!(events, i64::from(recorded.is_ok()), "refused: nothing was written");
    transaction.commit().await.unwrap();
    let stored: i64 =
        sqlx::query_scalar("select count(*) from postrider.deliveries").fetch_one(database.pool()).await.unwrap();
    assert_eq!(stored, i64::from(recorded.is_ok()));
    database.close().await;
    recorded.map(drop)
}

fn invalid(recorded: Result<(), RecordError>) -> InvalidDelivery {
    match recorded.unwrap_err() {
        RecordError::InvalidDelivery(invalid) | RecordError::InvalidEvent { source: invalid, .. } => invalid,
        RecordError::Database(error) => panic!("{error:?}"),
    }
}

#[tokio::test]
async fn c43_a_payload_of_256_kib_is_recorded_and_one_byte_more_is_refused() {
    let fits = "x".repeat(MAX_PAYLOAD_BYTES - r#"{"note":""}"#.len());
    let plain = |note: &str| NewDelivery::new("owner", "destination", &json!({ "note": note }));
    record(&fits[1..], plain).await.unwrap();
    record(&fits, plain).await.unwrap();
    let refused = invalid(record(&format!("{fits}x"), plain).await);
    assert_eq!(refused, InvalidDelivery::PayloadTooLarge { got: MAX_PAYLOAD_BYTES + 1, limit: MAX_PAYLOAD_BYTES });
}

#[tokio::test]
async fn c43_a_key_of_500_bytes_is_recorded_and_one_byte_more_is_refused() {
    let keyed = |note: &str| NewDelivery::new("owner", "destination", &json!({}))?.ordered_by(note);
    let fits = "k".repeat(MAX_KEY_BYTES);
    record(&fits, keyed).await.unwrap();
    let refused = invalid(record(&format!("{fits}k"), keyed).await);
    let (got, limit) = (MAX_KEY_BYTES + 1, MAX_KEY_BYTES);
    assert_eq!(refused, InvalidDelivery::TooLong { field: "ordering key", got, limit });
}

/// One event of many deliveries is neither too many parameters nor in anybody's way.
#[tokio::test]
async fn c43_an_event_of_10_000_deliveries_is_recorded_in_one_call_and_holds_up_nobody() {
    let postgres = postgres().await;
    let mut host = postgres.database.pool().begin().await.unwrap();
    let mut many = wishes(9_000, None);
    many.extend((0..1_000).flat_map(|key| wishes(1, Some(&format!("key-{key}")))));
    assert_eq!(recorder().record(&mut host, &Wished(many)).await.unwrap().deliveries.len(), 10_000);
    // Not yet committed.
    let other = postgres.record(wishes(1, Some("other"))).await[0];
    let claim = async |slots: usize| {
        let (slots, lease) = (slots.try_into().unwrap(), Duration::from_secs(60));
        postgres.queue.claim(&channel().name, slots, lease, Search::All).await.unwrap()
    };
    let leases = claim(10).await;
    assert_eq!(leases.iter().map(|lease| lease.delivery.id).collect::<Vec<_>>(), [other]);
    host.commit().await.unwrap();
    assert_eq!(claim(20_000).await.len(), 10_000);
}

#[tokio::test]
async fn c32_a_nul_anywhere_is_refused_and_text_that_only_looks_like_one_is_not() {
    let nul = "a\0b";
    for (make, field) in [
        ((|note| NewDelivery::new(note, "destination", &json!({}))) as fn(&str) -> _, "owner"),
        (|note| NewDelivery::new("owner", note, &json!({})), "destination"),
        (|note| NewDelivery::new("owner", "destination", &json!({ "deep": [{ note: 1 }] })), "payload"),
        (|note| NewDelivery::new("owner", "destination", &json!({}))?.about(note), "subject"),
        (|note| NewDelivery::new("owner", "destination", &json!({}))?.ordered_by(note), "ordering key"),
    ] {
        // The event has no NUL, only the delivery made of it.
        let made = make(nul);
        assert_eq!(made, Err(InvalidDelivery::Nul { field }));
    }
    let event = invalid(record(nul, |_| NewDelivery::new("owner", "destination", &json!({}))).await);
    assert_eq!(event, InvalidDelivery::Nul { field: "event" });
    let innocent = r"C:\u0000 and \\u0000 and \";
    record(innocent, |note| NewDelivery::new("owner", "destination", &json!({ note: note }))).await.unwrap();
}

#[tokio::test]
async fn an_empty_owner_or_destination_is_refused() {
    let empty = |field| Err(InvalidDelivery::Empty { field });
    assert_eq!(NewDelivery::new("", "destination", &json!({})), empty("owner"));
    assert_eq!(NewDelivery::new("owner", "", &json!({})), empty("destination"));
}

#[test]
fn two_channels_of_one_name_are_refused() {
    let twice = ["same", "same"].map(|name| Arc::new(Wishing(channel_named(name).name)) as Arc<dyn Channel>);
    let refused = Channels::new(twice.into()).unwrap_err();
    assert_eq!(refused, ConfigError::DuplicateChannel { channel: "same".into() });
}

#[test]
fn a_malformed_id_or_name_says_what_and_what_was_expected() {
    let id = "0190b5a4".parse::<postrider_actors::DeliveryId>().unwrap_err().to_string();
    assert!(id.contains("\"0190b5a4\" is not a delivery id") && id.contains("UUID"), "{id}");
    for name in ["", "Email", "2fa", "e-mail", "a b", "a\0", &"x".repeat(64)] {
        assert!(name.parse::<ChannelName>().is_err(), "{name:?}");
    }
    assert!("backchannel_logout".parse::<ChannelName>().is_ok());
}
