//! Connections that are kept for the next attempt, and when they are not.

use std::time::Duration;

use postrider::outbound::{Bytes, HeaderMap, HttpsClient, HttpsConfig, judge};
use postrider_actors::{Outcome, Reason};

use crate::support::{
    Ca, Dns, Found, Receiver, Step, at, client, client_asking, config, destination, http, post, post_status,
};

/// An answer that leaves the connection as it is.
fn whole() -> Vec<u8> {
    http("200 OK", &["Content-Length: 2"], "ok")
}

/// Answers so many requests on each connection, and then waits for the client's end.
fn answers(count: usize, answer: &[u8]) -> Vec<Step> {
    let mut steps = vec![Step::Send(answer.to_vec())];
    for _ in 1..count {
        steps.extend([Step::NextRequest, Step::Send(answer.to_vec())]);
    }
    steps.push(Step::AwaitClose);
    steps
}

#[tokio::test]
async fn the_next_attempt_for_a_url_goes_over_the_connection_of_the_last() {
    let ca = Ca::new();
    let receiver = Receiver::start(ca.certify(&["127.0.0.1"]), answers(3, &whole())).await;
    let client = client(&ca);
    for _ in 0..3 {
        assert_eq!(post_status(&client, &at(&receiver, "/")).await, 200);
    }
    assert_eq!((receiver.connections(), receiver.seen().len()), (1, 3));
    drop(client);
    receiver.client_gone().await;
}

/// What one receiver says late can so never be taken for the answer of another behind the same host.
#[tokio::test]
async fn a_connection_serves_one_url_alone() {
    let ca = Ca::new();
    let receiver = Receiver::start(ca.certify(&["127.0.0.1"]), answers(2, &whole())).await;
    let client = client(&ca);
    for path in ["/a", "/b", "/b?c", "/a"] {
        assert_eq!(post_status(&client, &at(&receiver, path)).await, 200);
    }
    assert_eq!(receiver.connections(), 3);
}

#[tokio::test]
async fn two_attempts_at_a_time_have_two_connections() {
    let ca = Ca::new();
    let receiver = Receiver::start(ca.certify(&["127.0.0.1"]), answers(3, &whole())).await;
    let (client, target) = (client(&ca), at(&receiver, "/"));
    let (one, other) = tokio::join!(post(&client, &target), post(&client, &target));
    drop((one.unwrap(), other.unwrap()));
    for _ in 0..2 {
        assert_eq!(post_status(&client, &target).await, 200);
    }
    assert_eq!((receiver.connections(), receiver.seen().len()), (2, 4));
}

#[tokio::test]
async fn a_name_that_leads_elsewhere_by_now_has_no_use_for_the_old_connection() {
    let ca = Ca::new();
    let receiver = Receiver::start(ca.certify(&["rp.example"]), answers(9, &whole())).await;
    let target = destination(&format!("https://rp.example:{}/", receiver.port()));
    let dns = Dns::start(|_, _, before| match before {
        0 | 1 => Found::at(&["127.0.0.1"]),
        2 => Found::at(&["127.0.0.9"]), // nobody listens there
        _ => Found::at(&["127.0.0.1", "169.254.169.254"]),
    })
    .await;
    let client = client_asking(&ca, &dns);
    assert_eq!(post_status(&client, &target).await, 200);
    assert_eq!(post_status(&client, &target).await, 200);
    assert_eq!(judge(&post(&client, &target).await), Outcome::retry(Reason::Connection));
    assert_eq!(judge(&post(&client, &target).await), Outcome::failed(Reason::RefusedDestination));
    assert_eq!((receiver.connections(), receiver.seen().len()), (1, 2));
}

/// C45: closed, or with bytes that nobody asked for, such as a 408 of a receiver that waited long enough.
#[tokio::test]
async fn c45_a_connection_that_ended_or_spoke_meanwhile_is_left_and_the_attempt_made_over_another() {
    let ca = Ca::new();
    let timeout = http("408 Request Timeout", &["Content-Length: 0"], "");
    let closes = http("200 OK", &["Content-Length: 0", "Connection: close"], "");
    let old = b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n".to_vec();
    for first in [
        vec![Step::Send(whole())],
        vec![Step::Send([whole(), timeout].concat()), Step::AwaitClose],
        vec![Step::Send(closes), Step::AwaitClose],
        vec![Step::Send(old), Step::AwaitClose],
        vec![Step::Send(http("200 OK", &["Content-Length: 9"], "half")), Step::AwaitClose],
        vec![Step::Send(http("200 OK", &[], "until the end"))],
    ] {
        let scripts = vec![first, answers(1, &http("204 No Content", &[], ""))];
        let receiver = Receiver::scripted(ca.certify(&["127.0.0.1"]), scripts).await;
        let client = client(&ca);
        assert_eq!(post_status(&client, &at(&receiver, "/")).await, 200);
        receiver.all_said().await;
        assert_eq!(post_status(&client, &at(&receiver, "/")).await, 204);
        assert_eq!((receiver.connections(), receiver.seen().len()), (2, 2));
    }
}

/// C45: whether the receiver has acted on it nobody knows, so the queue repeats it and says so, and not the client.
#[tokio::test]
async fn c45_a_kept_connection_that_ends_under_a_request_is_a_retry_and_never_a_second_send() {
    let ca = Ca::new();
    let steps = vec![Step::Send(whole()), Step::NextRequest];
    let receiver = Receiver::start(ca.certify(&["127.0.0.1"]), steps).await;
    let client = client(&ca);
    assert_eq!(post_status(&client, &at(&receiver, "/")).await, 200);
    assert_eq!(judge(&post(&client, &at(&receiver, "/")).await), Outcome::retry(Reason::Connection));
    assert_eq!((receiver.connections(), receiver.seen().len()), (1, 2));
}

/// C10: a second answer has an allowance of its own, and no more.
#[tokio::test]
async fn what_is_read_is_limited_for_each_answer_and_not_for_a_connection() {
    let ca = Ca::new();
    let body = "x".repeat(60 * 1024);
    let large = http("200 OK", &[&format!("Content-Length: {}", body.len())], &body);
    let receiver = Receiver::start(ca.certify(&["127.0.0.1"]), answers(4, &large)).await;
    let client = client(&ca);
    for _ in 0..4 {
        let reply = client.post(&at(&receiver, "/"), HeaderMap::new(), Bytes::new()).await.unwrap();
        assert_eq!(reply.body(body.len()).await.bytes().len(), body.len());
    }
    assert_eq!((receiver.connections(), receiver.seen().len()), (1, 4));
}

#[tokio::test]
async fn a_connection_is_closed_when_it_was_kept_for_long_enough_and_one_of_a_client_that_keeps_none_at_once() {
    let ca = Ca::new();
    for keep_for in [Duration::from_millis(100), Duration::ZERO] {
        let receiver = Receiver::start(ca.certify(&["127.0.0.1"]), answers(1, &whole())).await;
        let client = HttpsClient::new(HttpsConfig { keep_for, ..config(&ca) }).unwrap();
        assert_eq!(post_status(&client, &at(&receiver, "/")).await, 200);
        receiver.client_gone().await;
        assert_eq!(post_status(&client, &at(&receiver, "/")).await, 200);
        assert_eq!(receiver.connections(), 2);
    }
}
