//! The request as the client sees it: tests/data/logout_token.md, the checks on what is sent and on answers.

use postrider::signing::SigningAlgorithm;
use serde_json::json;

use crate::receivers::{Step, http};
use crate::world::{ISSUER, World, token_of};

#[tokio::test(flavor = "multi_thread")]
async fn checks_23_to_28_a_post_to_the_exact_uri_with_the_token_as_the_only_form_field() {
    let world = World::new().await;
    let receiver = world.answering(&["200 OK"]).await;
    world.register("rp", &receiver, "/logout/%20x?tenant=a&b=%2F").await;
    let subsystem = world.start().await;
    let session = world.tell(&["rp"]).await;
    let row = world.becomes("rp", "succeeded").await;
    subsystem.shut_down().await;

    let request = receiver.seen().remove(0).request;
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    let mut lines = head.lines();
    assert_eq!(lines.next(), Some("POST /logout/%20x?tenant=a&b=%2F HTTP/1.1"), "23, 26: the exact URI, query kept");
    let mut headers: Vec<String> = lines.map(|line| line.to_ascii_lowercase()).collect();
    headers.sort();
    let expected = [
        format!("content-length: {}", body.len()),
        "content-type: application/x-www-form-urlencoded".to_owned(),
        format!("host: 127.0.0.1:{}", receiver.port()),
        concat!("user-agent: postrider/", env!("CARGO_PKG_VERSION")).to_owned(),
    ];
    let unexpected: Vec<_> = headers.iter().filter(|line| !expected.contains(line)).collect();
    assert_eq!(unexpected, Vec::<&String>::new(), "24, 28: no cookie, no authorization, no referer");
    assert!(headers.contains(&expected[1]));
    assert_eq!(body.matches('=').count(), 1, "25: one field");
    assert!(!body.contains('&') && body.starts_with("logout_token="));

    let (header, claims) = token_of(&request);
    assert_eq!((&header["typ"], &header["alg"]), (&json!("logout+jwt"), &json!("ES256")));
    assert_eq!(header["kid"], world.keys.signer(SigningAlgorithm::Es256).unwrap().kid());
    assert_eq!(claims["iss"], ISSUER);
    assert_eq!(claims["aud"], "rp");
    assert_eq!(claims["jti"], row.id.to_string());
    assert_eq!(claims["sub"], world.account.0.to_string(), "19: as its ID tokens carry it");
    assert_eq!(claims["sid"], session.0.to_string(), "17: required by this client");
}

#[tokio::test(flavor = "multi_thread")]
async fn check_04_the_token_is_signed_as_the_client_registered() {
    let world = World::new().await;
    let receiver = world.answering(&["200 OK"]).await;
    world.register_signed("eddsa", &receiver, "/", SigningAlgorithm::EdDsa).await;
    let subsystem = world.start().await;
    world.tell(&["eddsa"]).await;
    world.becomes("eddsa", "succeeded").await;
    subsystem.shut_down().await;
    assert_eq!(token_of(&receiver.seen()[0].request).0["alg"], "EdDSA");
}

/// Checks 12 and 13: jti is the delivery's id in every attempt; only iat, exp and the signature change.
#[tokio::test(flavor = "multi_thread")]
async fn checks_12_and_13_every_attempt_carries_the_same_jti_and_is_signed_anew() {
    let world = World::new().await;
    let receiver = world.answering(&["503 Later", "500 Oops", "200 OK"]).await;
    world.register("rp", &receiver, "/").await;
    let subsystem = world.start().await;
    world.tell(&["rp"]).await;
    let row = world.becomes("rp", "succeeded").await;
    subsystem.shut_down().await;
    assert_eq!(row.attempts, 3);
    let requests: Vec<String> = receiver.seen().into_iter().map(|seen| seen.request).collect();
    assert_eq!(requests.len(), 3);
    for request in &requests {
        let (_, mut claims) = token_of(request);
        let (iat, exp) = (claims["iat"].as_i64().unwrap(), claims["exp"].as_i64().unwrap());
        assert_eq!(exp - iat, 120);
        assert_eq!(claims["jti"], row.id.to_string());
        let (_, mut first) = token_of(&requests[0]);
        for changing in ["iat", "exp"] {
            claims.as_object_mut().unwrap().remove(changing);
            first.as_object_mut().unwrap().remove(changing);
        }
        assert_eq!(claims, first);
    }
    assert_ne!(requests[0].lines().last(), requests[1].lines().last(), "signed anew");
}

/// Check 33: receivers are independent of each other.
#[tokio::test(flavor = "multi_thread")]
async fn check_33_a_client_that_hangs_holds_up_no_other() {
    let world = World::new().await;
    let slow = world.receiver(vec![vec![Step::AwaitClose]]).await;
    let quick = world.answering(&["200 OK"]).await;
    world.register("slow", &slow, "/").await;
    world.register("quick", &quick, "/").await;
    let subsystem = world.start_within(std::time::Duration::from_secs(15)).await;
    world.tell(&["slow", "quick"]).await;
    world.becomes("quick", "succeeded").await;
    assert_eq!(world.row("slow").await.status, "pending");
    subsystem.kill(&postrider_actors::ChildId::Supervisor); // does not wait for the slow one
    subsystem.ended().await;
}

/// C29, checks 29 and 30: the table of answers, and nothing of them kept but the code.
#[tokio::test(flavor = "multi_thread")]
async fn c29_each_answer_has_its_outcome_and_none_of_its_text_is_kept() {
    const MARKER: &str = "marker-of-the-peer";
    let world = World::new().await;
    let mut receivers = Vec::new();
    let table = [
        ("200", "succeeded", None),
        ("202", "succeeded", None),
        ("204", "succeeded", None),
        ("302", "failed", Some("302")),
        ("400", "failed", Some("400")),
        ("404", "failed", Some("404")),
        ("410", "failed", Some("410")),
        ("501", "pending", Some("501")),
        ("504", "pending", Some("504")),
    ];
    for (status, _, _) in table {
        let body = format!(r#"{{"error":"invalid_request","error_description":"{MARKER}"}}"#);
        let length = format!("Content-Length: {}", body.len());
        let headers = ["Location: https://idp.example/marker-of-the-peer", "X-Peer: marker-of-the-peer", &length];
        let answer = http(&format!("{status} {MARKER}"), if status == "204" { &headers[..2] } else { &headers }, &body);
        let receiver = world.receiver(vec![vec![Step::Send(answer)]]).await;
        world.register(&format!("rp{status}"), &receiver, "/").await;
        receivers.push(receiver);
    }
    let subsystem = world.start().await;
    let clients: Vec<String> = table.iter().map(|(status, _, _)| format!("rp{status}")).collect();
    let clients: Vec<&str> = clients.iter().map(String::as_str).collect();
    world.tell(&clients).await;
    for (client, (_, expected, error)) in clients.iter().zip(table) {
        crate::support::eventually(crate::world::SOON, client, async || {
            let row = world.row(client).await;
            row.status == expected && row.last_error.as_deref() == error
        })
        .await;
    }
    subsystem.shut_down().await;
    let everything: String = sqlx::query_scalar(
        "select (select string_agg(d::text, '') from postrider.deliveries d) || (select string_agg(e::text, '') from postrider.events e)",
    )
    .fetch_one(world.database.pool())
    .await
    .unwrap();
    assert!(!everything.contains(MARKER));
}
