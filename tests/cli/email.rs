//! `postrider serve` sends e-mail and takes one-click unsubscribes.

use std::sync::Arc;

use postrider::channels::Announcement;
use postrider::demo::mailbox::Mailbox;
use postrider::identity::{
    AccountId, AnnouncementDraft, ReferenceDirectory, create_account, draft_announcement, send_announcement,
    wants_announcements,
};
use postrider::{Channel, Channels, Recorder};
use sqlx::Connection;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use uuid::Uuid;

use crate::program::{PATIENCE, Scratch, Serve, key, run};
use crate::support::{self, TestDatabase, eventually};

async fn account_at(database: &TestDatabase, address: &str) -> AccountId {
    let account = create_account(&mut database.connect().await, address).await.unwrap();
    sqlx::query(
        "insert into postrider_identity.email_addresses (id, account_id, address, is_primary, verified_at)
         values ($1, $2, $3, true, now())",
    )
    .bind(Uuid::now_v7())
    .bind(account)
    .bind(address)
    .execute(database.pool())
    .await
    .unwrap();
    account
}

async fn announce(database: &TestDatabase) {
    let channel: Arc<dyn Channel> = Arc::new(Announcement::recording(Arc::new(ReferenceDirectory)));
    let recorder = Recorder::new(Channels::new(vec![channel]).unwrap());
    let mut connection = database.connect().await;
    let mut transaction = connection.begin().await.unwrap();
    let draft = AnnouncementDraft { subject: "We move", text: "On Saturday.", essential: false, created_by: "a test" };
    let announcement = draft_announcement(&mut transaction, &draft).await.unwrap();
    let sent = send_announcement(&mut transaction, &recorder, announcement, &mut |_| ()).await.unwrap();
    transaction.commit().await.unwrap();
    sent.committed();
}

#[tokio::test]
async fn it_sends_mail_and_who_posts_to_the_link_in_it_gets_no_more() {
    let (scratch, database) = (Scratch::new(), support::database().await);
    let (key, link) = (key(&scratch).await, scratch.arg("link.key"));
    run(&["keys", "generate-link-key", &link]).await.ok();
    let mailbox = Mailbox::start(None).await.unwrap();
    let relay = format!("smtp+plain://{}", mailbox.address());
    let url = database.url();
    let serve = Serve::start(
        &scratch,
        &[
            ["--database-url", &url, "--issuer", "https://id.example", "--signing-key", &key],
            ["--smtp-url", &relay, "--link-key", &link, "--service-name", "Example ID"],
        ]
        .concat(),
    )
    .await;
    let ada = account_at(&database, "ada@rcpt.example").await;
    announce(&database).await;
    eventually(PATIENCE, "the announcement has arrived", async || !mailbox.received().is_empty()).await;
    let message = mailbox.received()[0].text();
    assert!(
        message.contains("From: \"Example ID\" <no-reply@id.example>")
            || message.contains("From: Example ID <no-reply@id.example>"),
        "{message}"
    );
    assert!(message.contains("Subject: We move"), "{message}");
    let unfolded = message.replace("\r\n ", " ");
    let (_, link) = unfolded.split_once("List-Unsubscribe: <https://id.example").expect("the link");
    let path = link.split('>').next().unwrap();

    assert_eq!(serve.get(path).await.0, 200);
    assert!(wants_announcements(&mut database.connect().await, ada).await.unwrap(), "a GET changes nothing");
    let mut stream = TcpStream::connect(serve.address()).await.unwrap();
    let body = "List-Unsubscribe=One-Click";
    let request = format!(
        "POST {path} HTTP/1.1\r\nHost: id.example\r\nConnection: close\r\nContent-Length: {}\r\n\
         Content-Type: application/x-www-form-urlencoded\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(!wants_announcements(&mut database.connect().await, ada).await.unwrap());
    let log = serve.terminate().await;
    assert!(!log.contains("rcpt.example") && !log.contains(path), "{log}");
}

/// Without a relay it drops mail, and says so when it starts.
#[tokio::test]
async fn without_a_relay_it_says_that_mail_is_dropped_and_drops_it() {
    let (scratch, database) = (Scratch::new(), support::database().await);
    let key = key(&scratch).await;
    let url = database.url();
    let serve = ["--database-url", &url, "--issuer", "https://127.0.0.1", "--signing-key", &key];
    let serve = Serve::start(&scratch, &serve).await;
    account_at(&database, "ada@rcpt.example").await;
    announce(&database).await;
    eventually(PATIENCE, "it was dropped", async || {
        let ended = "select count(*) from postrider.deliveries where status = 'succeeded'";
        sqlx::query_scalar::<_, i64>(ended).fetch_one(database.pool()).await.unwrap() == 1
    })
    .await;
    let (_, _, metrics) = serve.get("/metrics").await;
    let dropped = "postrider_mail_unsent_total{channel=\"announcement\",reason=\"no_relay\"} 1\n";
    assert!(metrics.contains(dropped), "{metrics}");
    assert_eq!(serve.get("/unsubscribe/x").await.0, 404);
    assert!(serve.terminate().await.contains("e-mail is dropped"));
}
