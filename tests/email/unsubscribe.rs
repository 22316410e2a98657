//! The endpoint of one-click unsubscribe (RFC 8058), over HTTP: checks 14 to 23 of tests/data/unsubscribe.md.

use std::sync::Arc;

use postrider::identity::AccountId;
use postrider::unsubscribe::{Unsubscribe, router};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use uuid::Uuid;

use crate::club::Club;
use crate::world::{World, keys};

const ONE_CLICK: &str = "List-Unsubscribe=One-Click";
const FORM: &str = "application/x-www-form-urlencoded";

/// A site that has the pages, and a member to be unsubscribed.
struct Site {
    world: World,
    address: std::net::SocketAddr,
    ada: AccountId,
    serving: tokio::task::JoinHandle<()>,
}

impl Site {
    async fn open() -> Self {
        let world = World::new(Arc::new(Club)).await;
        let mut connection = world.connect().await;
        Club::found(&mut connection).await;
        let ada = Club::join(&mut connection, "ada", "ada@club.example").await;
        Club::join(&mut connection, "bob", "bob@club.example").await;
        let unsubscribe = Unsubscribe::new(Arc::new(Club), world.links.keys.clone(), world.database.pool().clone());
        let site = axum::Router::new().nest("/unsubscribe", router(unsubscribe));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let serving = tokio::spawn(async move { axum::serve(listener, site).await.unwrap() });
        Self { world, address, ada, serving }
    }

    fn token(&self) -> String {
        self.world.links.keys.unsubscribe_token(self.ada)
    }

    /// Status, head and body.
    async fn ask(&self, method: &str, token: &str, content_type: &str, body: &str) -> (u16, String, String) {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let length = body.len();
        let request = format!(
            "{method} /unsubscribe/{token} HTTP/1.1\r\nHost: id.example\r\nConnection: close\r\n\
             Content-Type: {content_type}\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head[9..12].parse().unwrap(), head.to_ascii_lowercase(), body.to_owned())
    }

    async fn post(&self, token: &str) -> (u16, String, String) {
        self.ask("POST", token, FORM, ONE_CLICK).await
    }

    /// How many members still get newsletters.
    async fn subscribed(&self) -> i64 {
        let count = "select count(*) from members where newsletter";
        sqlx::query_scalar(count).fetch_one(self.world.database.pool()).await.unwrap()
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// 14, 18, 20 and 23: a POST alone does it, with neither cookie nor referrer; again, it answers and changes nothing more.
#[tokio::test]
async fn a_post_unsubscribes_the_one_recipient_and_again_the_same() {
    let site = Site::open().await;
    let first = site.post(&site.token()).await;
    assert_eq!((first.0, site.subscribed().await), (200, 1));
    assert!(first.1.contains("cache-control: no-store") && !first.1.contains("set-cookie"), "{}", first.1);
    assert!(first.2.len() < 2000, "tiny");
    let again = site.post(&site.token()).await;
    assert_eq!((again.0, &again.2, site.subscribed().await), (200, &first.2, 1));
}

/// 15: both forms of body.
#[tokio::test]
async fn a_multipart_body_is_taken_too() {
    let site = Site::open().await;
    let body = "--b\r\nContent-Disposition: form-data; name=\"List-Unsubscribe\"\r\n\r\nOne-Click\r\n--b--\r\n";
    let (status, ..) = site.ask("POST", &site.token(), "multipart/form-data; boundary=b", body).await;
    assert_eq!((status, site.subscribed().await), (200, 1));
}

/// 17: scanners follow links; nothing but a POST changes anything. 16: nothing is ever a redirect.
#[tokio::test]
async fn c22_a_get_changes_nothing_and_shows_a_form_that_posts() {
    let site = Site::open().await;
    for method in ["GET", "HEAD", "OPTIONS", "PUT", "DELETE", "PATCH"] {
        let (status, head, body) = site.ask(method, &site.token(), FORM, ONE_CLICK).await;
        assert!(!head.contains("location:") && !(300..400).contains(&status), "{method}: {head}");
        assert_eq!(site.subscribed().await, 2, "{method}");
        if method == "GET" {
            assert_eq!(status, 200);
            assert!(body.contains("<form method=\"post\">") && body.contains("value=\"One-Click\""), "{body}");
            assert!(!body.contains("ada"), "{body}");
        }
    }
    let (_, head, _) = site.ask("GET", &site.token(), FORM, "").await;
    assert!(head.contains("content-security-policy: default-src 'none'") && head.contains("no-referrer"), "{head}");
}

/// 12, 19: whoever guesses learns nothing, not even whether he guessed.
#[tokio::test]
async fn a_wrong_token_changes_nothing_and_is_answered_as_a_right_one() {
    let site = Site::open().await;
    let right = site.token();
    let last = if right.ends_with('A') { "B" } else { "A" };
    let nobody = site.world.links.keys.unsubscribe_token(AccountId(Uuid::new_v4()));
    let foreign = keys(&[9]).unsubscribe_token(site.ada);
    let altered = format!("{}{last}", &right[..right.len() - 1]);
    let shown = site.ask("GET", &right, FORM, "").await;
    let mut answers = Vec::new();
    for wrong in
        [altered.as_str(), foreign.as_str(), nobody.as_str(), &right[1..], "x", &site.ada.to_string(), "%00", "%ff%fe"]
    {
        let get = site.ask("GET", wrong, FORM, "").await;
        assert_eq!((get.0, &get.2), (shown.0, &shown.2), "{wrong}");
        answers.push((wrong.to_owned(), site.post(wrong).await));
    }
    assert_eq!(site.subscribed().await, 2);
    let taken = site.post(&right).await;
    for (wrong, answer) in answers {
        assert_eq!((answer.0, &answer.2), (taken.0, &taken.2), "{wrong}");
    }
    assert_eq!(site.subscribed().await, 1);
}

/// 13: a token made with an older key is still good.
#[tokio::test]
async fn a_token_of_an_older_key_is_good_while_the_key_is_there() {
    let mut site = Site::open().await;
    let old = site.token();
    site.serving.abort();
    let keys = keys(&[2, 1]);
    assert_ne!(keys.unsubscribe_token(site.ada), old);
    let unsubscribe = Unsubscribe::new(Arc::new(Club), keys, site.world.database.pool().clone());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    site.address = listener.local_addr().unwrap();
    let router = axum::Router::new().nest("/unsubscribe", router(unsubscribe));
    site.serving = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    assert_eq!(site.post(&old).await.0, 200);
    assert_eq!(site.subscribed().await, 1);
}

/// 21: without the pair nothing happens.
#[tokio::test]
async fn a_post_that_does_not_say_one_click_changes_nothing_and_gets_400() {
    let site = Site::open().await;
    let part = |value: &str| {
        format!("--b\r\nContent-Disposition: form-data; name=\"List-Unsubscribe\"\r\n\r\n{value}\r\n--b--\r\n")
    };
    let multipart = "multipart/form-data; boundary=b";
    for (content_type, body) in [
        (FORM, String::new()),
        (FORM, "List-Unsubscribe=one-click".into()),
        (FORM, "List-Unsubscribe=One-Click&List-Unsubscribe=No".into()),
        (FORM, "list-unsubscribe=One-Click".into()),
        (FORM, "One-Click".into()),
        (FORM, format!("{ONE_CLICK}&x={}", "x".repeat(20_000))),
        ("text/plain", ONE_CLICK.into()),
        ("application/json", "{\"List-Unsubscribe\":\"One-Click\"}".into()),
        (multipart, part("Two-Click")),
        (multipart, ONE_CLICK.into()),
        ("multipart/form-data", part("One-Click")),
    ] {
        let (status, ..) = site.ask("POST", &site.token(), content_type, &body).await;
        assert_eq!((status, site.subscribed().await), (400, 2), "{content_type} {body:.60}");
    }
}

/// An address is only said to be unsubscribed once it is.
#[tokio::test]
async fn while_the_database_fails_it_asks_to_try_again() {
    let site = Site::open().await;
    sqlx::query("alter table members rename to elsewhere").execute(site.world.database.pool()).await.unwrap();
    let (status, head, body) = site.post(&site.token()).await;
    assert_eq!(status, 503);
    assert!(body.contains("Nothing was changed") && !body.contains("elsewhere") && head.contains("no-store"), "{body}");
}
