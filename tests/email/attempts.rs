//! One attempt after another: the same message, whoever sends it.

use postrider::channels::EmailPayload;
use postrider::directory::Notice;
use postrider::identity::{AccountId, NotificationId};
use uuid::Uuid;

use crate::idp::Idp;
use crate::support::eventually;
use crate::world::{Mail, SOON};

fn passkey() -> Notice {
    Notice::PasskeyAdded { name: "Blue key".into() }
}

/// The relay took each message and hung up before it said so: what is sent again is byte for byte the same, by whichever
/// process, so that a receiver can tell.
#[tokio::test]
async fn c26_every_attempt_by_every_process_sends_the_same_bytes() {
    let idp = Idp::new().await;
    let (account, _) = idp.account_with_address("ada").await;
    let recovery = idp.ask_to_recover(account).await;
    idp.notify(account, &passkey()).await;
    idp.announce("News", false).await;
    idp.mailbox.lose_answers(usize::MAX);
    let first = idp.start().await;
    eventually(SOON, "all three were tried", async || idp.mailbox.received().len() >= 3).await;
    first.shut_down().await;
    let tried = idp.mailbox.received();
    idp.mailbox.lose_answers(0);
    idp.deliver().await;
    let received = idp.mailbox.received();
    let id = |bytes: &[u8]| {
        let message = String::from_utf8(bytes.to_vec()).unwrap();
        let ids: Vec<&str> = message.lines().filter_map(|line| line.strip_prefix("Message-ID: ")).collect();
        assert!(ids.len() == 1 && ids[0].starts_with('<') && ids[0].ends_with("@id.example>"), "{message}");
        ids[0].to_owned()
    };
    let ids: std::collections::BTreeSet<String> = received.iter().map(|one| id(&one.bytes)).collect();
    assert_eq!(ids.len(), 3, "one for each delivery");
    for one in &tried {
        let again: Vec<_> = received[tried.len()..].iter().filter(|other| id(&other.bytes) == id(&one.bytes)).collect();
        assert_eq!(again.len(), 1, "sent again by the other process");
        assert!(again[0].bytes == one.bytes, "other bytes");
    }
    let link = idp.links.pages.recovery(&idp.links.keys.recovery_token(recovery));
    assert!(received.iter().any(|one| Mail::read(one).text.contains(&link)));
}

/// c15, from the queue: the connection was lost after the final dot, so it is one retryable failure and no more.
#[tokio::test]
async fn c15_a_lost_answer_is_one_attempt_and_is_retried_by_the_queue() {
    let idp = Idp::new().await;
    let (account, _) = idp.account_with_address("ada").await;
    idp.notify(account, &passkey()).await;
    idp.mailbox.lose_answers(1);
    idp.deliver().await;
    assert_eq!(idp.mailbox.received().len(), 2, "as many messages as attempts");
    let row: (String, i32) = sqlx::query_as("select status, attempt from postrider.deliveries")
        .fetch_one(idp.database.pool())
        .await
        .unwrap();
    assert_eq!(row, ("succeeded".into(), 2));
}

/// Without a relay the workers run and drop every delivery, so that none waits for ever.
#[tokio::test]
async fn without_a_relay_every_delivery_is_dropped() {
    let idp = Idp::new().await;
    let (account, _) = idp.account_with_address("ada").await;
    idp.notify(account, &passkey()).await;
    idp.ask_to_recover(account).await;
    idp.announce("News", true).await;
    let subsystem = idp.start_with(idp.channels_with(&idp.links, false)).await;
    idp.settled().await;
    subsystem.shut_down().await;
    assert_eq!(idp.mailbox.connections(), 0);
    assert_eq!((idp.counts("email").await["succeeded"], idp.counts("announcement").await["succeeded"]), (2, 1));
}

/// An address that no mail system takes, which a host wrote to its table by itself.
#[tokio::test]
async fn c20_an_address_that_no_mail_system_takes_fails_at_once_with_its_kind() {
    for address in ["a b@rcpt.example", "a@b@rcpt.example", "x@rcpt.example>\r\nRCPT TO:<w@rcpt.example"] {
        let idp = Idp::new().await;
        let (account, _) = idp.account_with_address("ada").await;
        idp.notify(account, &passkey()).await;
        sqlx::query(
            "update postrider.deliveries set payload = jsonb_set(payload, '{message,address}', to_jsonb($1::text))",
        )
        .bind(address)
        .execute(idp.database.pool())
        .await
        .unwrap();
        idp.deliver().await;
        let row: (String, Option<String>, i32) =
            sqlx::query_as("select status, last_error, attempt from postrider.deliveries")
                .fetch_one(idp.database.pool())
                .await
                .unwrap();
        assert_eq!(row, ("failed".into(), Some("invalid_address".into()), 1), "{address}");
        assert_eq!(idp.mailbox.connections(), 0, "no byte reached the relay");
    }
}

/// Rolling deploys: what a newer release wrote waits for a newer replica.
#[tokio::test]
async fn a_payload_of_a_newer_release_is_deferred_and_never_failed() {
    let idp = Idp::new().await;
    let (account, _) = idp.account_with_address("ada").await;
    idp.notify(account, &passkey()).await;
    for (path, value) in
        [("{message,kind}", "\"postcard\""), ("{message,notice,content}", "\"new_content\""), ("{colour}", "1")]
    {
        sqlx::query("update postrider.deliveries set payload = jsonb_set(payload, $1::text[], $2::jsonb)")
            .bind(path)
            .bind(value)
            .execute(idp.database.pool())
            .await
            .unwrap();
        idp.execute("update postrider.deliveries set due_at = now(), ready_at = now(), last_error = null").await;
        let subsystem = idp.start().await;
        eventually(SOON, "it was deferred", async || {
            let row = "select last_error = 'unreadable_payload' and status = 'pending' and attempt = 0
                         from postrider.deliveries";
            sqlx::query_scalar::<_, Option<bool>>(row).fetch_one(idp.database.pool()).await.unwrap() == Some(true)
        })
        .await;
        subsystem.shut_down().await;
        sqlx::query("update postrider.deliveries set payload = payload - 'colour'")
            .execute(idp.database.pool())
            .await
            .unwrap();
    }
    assert_eq!(idp.mailbox.received().len(), 0);
}

/// The stored form is a contract between releases.
#[tokio::test]
async fn the_payload_has_its_documented_form() {
    let idp = Idp::new().await;
    let (account, address) = idp.account_with_address("ada").await;
    let notification = idp.notify(account, &passkey()).await;
    let recovery = idp.ask_to_recover(account).await;
    let payloads: Vec<serde_json::Value> = sqlx::query_scalar("select payload from postrider.deliveries order by id")
        .fetch_all(idp.database.pool())
        .await
        .unwrap();
    let notice = &payloads[0]["message"];
    let AccountId(account_id) = account;
    assert_eq!(payloads[0]["account"], account_id.to_string());
    assert_eq!((&notice["kind"], &notice["address"]), (&"notification".into(), &"ada@rcpt.example".into()));
    assert_eq!(
        (&notice["notice"]["content"], &notice["notice"]["passkey"]),
        (&"passkey_added".into(), &"Blue key".into())
    );
    let NotificationId(id) = notification;
    assert_eq!(notice["notification"], id.to_string());
    let link = serde_json::json!({ "kind": "recovery_link", "recovery": recovery, "address": address });
    assert_eq!(payloads[1], serde_json::json!({ "account": account, "message": link }));
    let read: EmailPayload = serde_json::from_value(payloads[1].clone()).unwrap();
    assert_ne!(read.account, AccountId(Uuid::nil()));
}
