//! Cases of area b: the HTTP client.

use std::time::{Duration, Instant};

use hickory_resolver::proto::op::ResponseCode;
use postrider::outbound::{
    Bytes, Destination, HeaderMap, HttpsClient, HttpsConfig, MAX_BODY_BYTES, MAX_HEAD_BYTES, MAX_HEADERS, ReplyBody,
    header, judge,
};
use postrider_actors::{Outcome, Reason, ReplyCode};

use crate::support::{
    Ca, Captured, Dns, Found, Receiver, Step, Unanswering, at, client, config, destination, http, impatient, post,
    post_fails, post_status,
};

fn code(number: u16) -> Reason {
    Reason::Code(ReplyCode::new(number).unwrap())
}

/// What comes of one post to a receiver that says exactly this and closes.
async fn said(bytes: Vec<u8>) -> Outcome {
    let ca = Ca::new();
    let receiver = Receiver::answering(ca.certify(&["127.0.0.1"]), bytes).await;
    let outcome = judge(&post(&client(&ca), &at(&receiver, "/")).await);
    assert_eq!(receiver.seen().len(), 1, "the request was sent once");
    outcome
}

#[tokio::test]
async fn c09_an_interim_reply_is_never_taken_for_the_answer_nor_shifts_the_next_one() {
    let ca = Ca::new();
    let hints = http("103 Early Hints", &["Link: </x>; rel=preload"], "");
    let with_interim = [hints.clone(), http("100 Continue", &[], "")].concat();
    let empty = &["Content-Length: 0"];
    let steps = vec![
        Step::Send([with_interim, http("200 OK", empty, "")].concat()),
        Step::NextRequest,
        Step::Send([hints.clone(), http("500 Oops", empty, "")].concat()),
        Step::AwaitClose,
    ];
    let receiver = Receiver::start(ca.certify(&["127.0.0.1"]), steps).await;
    let client = client(&ca);
    assert_eq!(post_status(&client, &at(&receiver, "/")).await, 200);
    assert_eq!(post_status(&client, &at(&receiver, "/")).await, 500);
    assert_eq!((receiver.connections(), receiver.seen().len()), (1, 2));
    assert_eq!(said(hints).await, Outcome::retry(Reason::Connection), "interim only, then closed");
}

#[tokio::test]
async fn c10_one_deadline_covers_a_head_that_trickles_in() {
    let ca = Ca::new();
    let head = http("200 OK", &[&"X: y\r\n".repeat(200)], "");
    let trickle = vec![Step::Trickle(head, Duration::from_millis(10))];
    let receiver = Receiver::start(ca.certify(&["127.0.0.1"]), trickle).await;
    let begun = Instant::now();
    assert_eq!(post_fails(&impatient(config(&ca)), &at(&receiver, "/")).await, Reason::Timeout);
    assert!((480..1500).contains(&begun.elapsed().as_millis()), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn c10_a_complete_success_stands_though_its_body_trickles_past_the_deadline() {
    let ca = Ca::new();
    let head = http("200 OK", &["Transfer-Encoding: chunked"], "");
    let body = "1\r\nx\r\n".repeat(1000).into_bytes();
    let steps = vec![Step::Send(head), Step::Trickle(body, Duration::from_millis(10))];
    let receiver = Receiver::start(ca.certify(&["127.0.0.1"]), steps).await;
    let begun = Instant::now();
    let attempt = post(&impatient(config(&ca)), &at(&receiver, "/")).await;
    assert_eq!(judge(&attempt), Outcome::Succeeded);
    let body = attempt.unwrap().body(MAX_BODY_BYTES).await;
    assert!(matches!(&body, ReplyBody::Truncated(read) if !read.is_empty()), "{body:?}");
    assert!((480..1500).contains(&begun.elapsed().as_millis()), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn c11_no_more_than_the_limit_is_read_of_an_endless_or_compressed_body_and_the_status_decides() {
    let ca = Ca::new();
    for (status, headers, expected) in [
        ("200 OK", &["Content-Encoding: gzip"][..], Outcome::Succeeded),
        ("200 OK", &["Content-Encoding: zstd", "Content-Length: 9223372036854775807"], Outcome::Succeeded),
        ("503 Busy", &[], Outcome::retry(code(503))),
    ] {
        let steps = vec![Step::Send(http(status, headers, "")), Step::Flood(vec![0x1f; 4096])];
        let receiver = Receiver::start(ca.certify(&["127.0.0.1"]), steps).await;
        let attempt = post(&client(&ca), &at(&receiver, "/")).await;
        assert_eq!(judge(&attempt), expected);
        let ReplyBody::Truncated(read) = attempt.unwrap().body(usize::MAX).await else { panic!("an end was found") };
        assert!(read.len() <= MAX_BODY_BYTES && read.iter().all(|byte| *byte == 0x1f), "{} bytes", read.len());
        receiver.client_gone().await;
        assert!(!receiver.seen()[0].request.to_ascii_lowercase().contains("accept-encoding"));
    }
}

#[tokio::test]
async fn c11_an_unread_body_is_not_drained() {
    let ca = Ca::new();
    let steps = vec![Step::Send(http("200 OK", &[], "")), Step::Flood(vec![0; 64 * 1024])];
    let receiver = Receiver::start(ca.certify(&["127.0.0.1"]), steps).await;
    assert_eq!(post_status(&client(&ca), &at(&receiver, "/")).await, 200);
    receiver.client_gone().await;
    let in_the_kernels_buffers = 16 << 20;
    assert!(receiver.flooded() < in_the_kernels_buffers, "{}", receiver.flooded());
}

#[tokio::test]
async fn c45_a_connection_that_closes_without_an_answer_is_a_retry_and_never_a_second_send() {
    let ca = Ca::new();
    for partial in ["", "HTTP/1.1 200", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n"] {
        let steps = vec![Step::Send(partial.into())];
        let receiver = Receiver::start(ca.certify(&["127.0.0.1"]), steps).await;
        let attempt = post(&client(&ca), &at(&receiver, "/")).await;
        assert_eq!(judge(&attempt), Outcome::retry(Reason::Connection), "{partial:?}");
        assert_eq!((receiver.connections(), receiver.seen().len()), (1, 1));
    }
}

#[tokio::test]
async fn c47_every_status_has_one_meaning_and_an_unparsable_one_is_a_retry() {
    for (status, expected) in [
        ("408", Outcome::retry(code(408))),
        ("409", Outcome::failed(code(409))),
        ("410", Outcome::failed(code(410))),
        ("413", Outcome::failed(code(413))),
        ("418", Outcome::failed(code(418))),
        ("421", Outcome::failed(code(421))),
        ("425", Outcome::failed(code(425))),
        ("499", Outcome::failed(code(499))),
        ("511", Outcome::retry(code(511))),
        ("599", Outcome::retry(code(599))),
        ("304", Outcome::failed(code(304))),
        ("099", Outcome::retry(Reason::Protocol)),
        ("1000", Outcome::retry(Reason::Protocol)),
        ("20", Outcome::retry(Reason::Protocol)),
        ("2OO", Outcome::retry(Reason::Protocol)),
    ] {
        assert_eq!(said(http(&format!("{status} Whatever"), &[], "")).await, expected, "{status}");
    }
    let wait = Some(Duration::from_secs(7200));
    let too_many = said(http("429 Slow Down", &["Retry-After: 7200"], "")).await;
    assert_eq!(too_many, Outcome::Retry { reason: code(429), not_before: wait });
}

#[tokio::test]
async fn c47_a_redirect_fails_and_its_location_is_never_dialled() {
    let ca = Ca::new();
    let bait = Receiver::answering(ca.certify(&["127.0.0.1"]), http("200 OK", &[], "")).await;
    let location = format!("Location: https://127.0.0.1:{}/", bait.port());
    for status in [301, 302, 303, 307, 308] {
        assert_eq!(said(http(&format!("{status} Moved"), &[&location], "")).await, Outcome::failed(code(status)));
    }
    assert_eq!(bait.connections(), 0);
}

#[tokio::test]
async fn c57_a_head_over_the_limits_is_a_protocol_error_and_one_within_them_is_judged_by_its_status() {
    let many = |count: usize| "X: y\r\n".repeat(count - 1) + "X: y";
    let within = [
        http("200 OK", &[&many(MAX_HEADERS)], ""),
        http(&format!("200 {}", "r".repeat(20_000)), &[], ""),
        http("200 OK", &[&format!("X: {}", "y".repeat(MAX_HEAD_BYTES - 100))], ""),
    ];
    for head in within {
        assert_eq!(said(head).await, Outcome::Succeeded);
    }
    let over = [
        http("200 OK", &[&many(MAX_HEADERS + 1)], ""),
        http("200 OK", &[&format!("X: {}", "y".repeat(MAX_HEAD_BYTES))], ""),
        http("200 OK", &[&format!("X: {}", "y".repeat(1 << 20))], ""),
    ];
    for head in over {
        assert_eq!(said(head).await, Outcome::retry(Reason::Protocol));
    }
}

#[tokio::test]
async fn c57_a_head_that_never_ends_is_left_at_the_limit() {
    let ca = Ca::new();
    let interim = http("102 Processing", &[], "");
    for endless in [b"HTTP/1.1 200 OK\r\nX: ".to_vec(), b"HTTP/1.1 200 ".to_vec(), interim.clone()] {
        let filler = if endless == interim { interim.repeat(100) } else { vec![b'y'; 4096] };
        let steps = vec![Step::Send(endless), Step::Flood(filler)];
        let receiver = Receiver::start(ca.certify(&["127.0.0.1"]), steps).await;
        assert_eq!(post_fails(&client(&ca), &at(&receiver, "/")).await, Reason::Protocol);
        receiver.client_gone().await;
    }
}

#[tokio::test]
async fn c57_trailers_without_end_leave_the_status_standing() {
    let ca = Ca::new();
    let head = http("200 OK", &["Transfer-Encoding: chunked"], "2\r\nok\r\n0\r\n");
    let steps =
        vec![Step::Send(head), Step::Flood(b"X-Trailer: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n".repeat(80))];
    let receiver = Receiver::start(ca.certify(&["127.0.0.1"]), steps).await;
    let attempt = post(&client(&ca), &at(&receiver, "/")).await;
    assert_eq!(judge(&attempt), Outcome::Succeeded);
    assert_eq!(attempt.unwrap().body(MAX_BODY_BYTES).await, ReplyBody::Truncated("ok".into()));
    receiver.client_gone().await;
}

#[tokio::test]
async fn c59_nothing_of_url_headers_or_bodies_is_logged_at_any_level() {
    let captured = Captured::default();
    let _guard = captured.everything_of_ours();

    let (ca, other) = (Ca::new(), Ca::new());
    let dns = Dns::saying(Found::Code(ResponseCode::ServFail)).await;
    let config = HttpsConfig { name_server: Some(dns.address()), ..config(&ca) };
    let answer = http("400 SECRET123", &["Retry-After: SECRET123", "X: SECRET123"], "SECRET123");
    let answering = Receiver::answering(ca.certify(&["127.0.0.1"]), answer).await;
    let untrusted = Receiver::answering(other.certify(&["127.0.0.1"]), http("200 OK", &[], "")).await;
    let silent = Receiver::start(ca.certify(&["127.0.0.1"]), vec![Step::AwaitClose]).await;
    let garbage = Receiver::answering(ca.certify(&["127.0.0.1"]), b"SECRET123\r\n\r\n".to_vec()).await;
    let here = |port: u16| format!("https://127.0.0.1:{port}/hook?token=SECRET123");
    let urls = [
        "https://nonexistent.invalid/hook?token=SECRET123".to_owned(),
        "https://rp.example/hook?token=SECRET123".to_owned(),
        "https://10.0.0.1/hook?token=SECRET123".to_owned(),
        here(1),
        here(answering.port()),
        here(untrusted.port()),
        here(silent.port()),
        here(garbage.port()),
    ];
    let client = impatient(config);
    let mut reasons = Vec::new();
    for url in &urls {
        let Ok(target) = Destination::parse_with(url, &crate::support::loopback()) else { continue };
        let mut headers = HeaderMap::new();
        headers.insert(header::AUTHORIZATION, "Bearer eyJSECRET123".parse().unwrap());
        let attempt = client.post(&target, headers, Bytes::from_static(b"logout_token=eyJSECRET123")).await;
        reasons.push(format!("{attempt:?} {:?}", judge(&attempt)));
    }
    assert_eq!(reasons.len(), urls.len() - 1);
    assert!(!reasons.join("\n").contains("SECRET123"), "{reasons:#?}");

    let log = captured.text();
    assert!(log.contains("OUTBOUND ADDRESS CHECKS ARE LOOSENED"), "the loosened policy is said aloud: {log}");
    for secret in ["SECRET123", "eyJ", "/hook", "token="] {
        assert!(!log.contains(secret), "{secret} in {log}");
    }
}

#[test]
fn c59_a_strict_client_has_nothing_to_warn_of() {
    let captured = Captured::default();
    let _guard = captured.everything_of_ours();
    let ca = Ca::new();
    let strict = HttpsConfig { policy: Default::default(), ..config(&ca) };
    assert!(HttpsClient::new(strict).is_ok());
    assert_eq!(captured.text(), "");
}

#[tokio::test]
async fn c10_a_connect_that_nobody_answers_ends_with_its_own_budget() {
    let ca = Ca::new();
    let dns = Dns::saying(Found::at(&["127.0.0.1"])).await;
    let config = HttpsConfig { name_server: Some(dns.address()), ..config(&ca) };
    let silent = Unanswering::start().await;
    let begun = Instant::now();
    let target = destination(&format!("https://rp.example:{}/", silent.port()));
    assert_eq!(post_fails(&impatient(config), &target).await, Reason::Timeout);
    assert!((240..480).contains(&begun.elapsed().as_millis()), "{:?}", begun.elapsed());
}
