//! Every row of tests/data/http_outcomes.csv, over the wire. Delays and MAX_AGE are the queue's to prove.

use std::time::Duration;

use hickory_resolver::proto::op::ResponseCode;
use postrider::outbound::{
    AddressPolicy, Destination, HttpsConfig, MAX_HEAD_BYTES, Reply, classify, header, judge, retry_after,
};
use postrider_actors::{Outcome, Reason};
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;

use crate::support::{
    Ca, Dns, Found, Receiver, Row, Step, Unanswering, at, client, client_asking, config, destination, header_lines,
    http, impatient, loopback, now_of_vectors, post, rows, vacant,
};

/// A row's outcome, with the queue's MAX_AGE rule applied to ours.
fn word(outcome: Outcome, row: &Row) -> &'static str {
    let seconds = |column: &str| Duration::from_secs(row[column].parse().unwrap());
    match outcome {
        Outcome::Succeeded => "succeeded",
        Outcome::Failed { .. } | Outcome::Deferred { .. } => "failed",
        Outcome::Retry { not_before, .. } => {
            let left = seconds("max_age_s").checked_sub(seconds("age_s")).unwrap_or_default();
            let too_late = left.is_zero() || not_before.is_some_and(|wait| wait > left);
            if too_late { "failed" } else { "retry" }
        }
    }
}

/// Whether a Retry-After that shows in the row's least delay is what came out, exactly.
fn floor_is_right(outcome: Outcome, row: &Row) -> bool {
    let Outcome::Retry { not_before, .. } = outcome else { return true };
    let wait = not_before.unwrap_or_default();
    row["outcome"] != "retry" || wait == Duration::from_secs(row["delay_min_s"].parse().unwrap())
}

/// The outcome of a reply, with its Retry-After read at the vectors' time.
fn at_vectors_time(reply: &Reply) -> Outcome {
    let lines = reply.headers().get_all(header::RETRY_AFTER).into_iter().map(|line| line.as_bytes());
    classify(reply.status, retry_after(lines, now_of_vectors()))
}

#[tokio::test]
async fn every_status_and_retry_after_of_the_vectors_comes_to_its_outcome() {
    let ca = Ca::new();
    let client = client(&ca);
    let generic = |row: &Row| matches!(&*row["channel"], "any" | "logout" | "ssf") && row["event"] == "response";
    let rows: Vec<Row> = rows("http_outcomes.csv").into_iter().filter(generic).collect();
    assert!(rows.len() > 130, "{}", rows.len());
    let mut wrong = Vec::new();
    for row in rows {
        let lines = header_lines(&row);
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let answer = http(&format!("{} Whatever", row["status"]), &lines, "");
        let receiver = Receiver::answering(ca.certify(&["127.0.0.1"]), answer).await;
        let attempt = post(&client, &at(&receiver, "/")).await;
        let outcome = attempt.as_ref().map_or_else(|_| judge(&attempt), at_vectors_time);
        if word(outcome, &row) != row["outcome"] || !floor_is_right(outcome, &row) {
            wrong.push(format!("{}: {outcome:?}, expected {} ({})", row["id"], row["outcome"], row["rule"]));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[tokio::test]
async fn every_event_of_the_vectors_comes_to_its_outcome() {
    let rows: Vec<Row> = rows("http_outcomes.csv").into_iter().filter(|row| row["event"] != "response").collect();
    assert!(rows.len() > 25, "{}", rows.len());
    for row in rows {
        let (outcome, reason) = staged(&row).await;
        assert_eq!(word(outcome, &row), row["outcome"], "{}: {outcome:?} ({})", row["id"], row["rule"]);
        let seen = match outcome {
            Outcome::Succeeded => None,
            Outcome::Retry { reason, .. } | Outcome::Failed { reason } | Outcome::Deferred { reason, .. } => {
                Some(reason.to_string())
            }
        };
        assert_eq!(seen.as_deref(), reason, "{}", row["id"]);
    }
}

/// Stages a row's event; with the outcome comes the reason that is right for it.
async fn staged(row: &Row) -> (Outcome, Option<&'static str>) {
    let ca = Ca::new();
    let head_then = |status: &str, headers: &[&str], then: Step| vec![Step::Send(http(status, headers, "")), then];
    let endless = |status: &str| head_then(status, &[], Step::Flood(vec![b'x'; 16 * 1024]));
    let stalled = || head_then("200 OK", &["Content-Length: 9"], Step::AwaitClose);
    let trickle = Step::Trickle(http("200 OK", &[&"X: y\r\n".repeat(50)], ""), Duration::from_millis(30));
    let said = |text: &str| vec![Step::Send(text.as_bytes().to_vec())];
    let big = format!("X-Big: {}", "y".repeat(MAX_HEAD_BYTES));
    match &*row["event"] {
        "timeout_connect" => (unanswered_connect(&ca).await, Some("timeout")),
        "timeout_response_head" => (received(&ca, vec![Step::AwaitClose]).await, Some("timeout")),
        "timeout_total" => (received(&ca, vec![trickle]).await, Some("timeout")),
        "connect_refused" => (judged(&ca, vacant().await).await, Some("connection")),
        "connect_reset" => (reset(&ca).await, Some("connection")),
        "host_unreachable" => (unreachable_host(&ca).await, Some("connection")),
        "dns_nxdomain" => (resolved(&ca, Found::Code(ResponseCode::NXDomain)).await, Some("dns")),
        "dns_servfail" => (resolved(&ca, Found::Code(ResponseCode::ServFail)).await, Some("dns")),
        "dns_timeout" => (resolved(&ca, Found::Silence).await, Some("dns")),
        "refused_destination_literal" => (literal("https://10.0.0.1/"), Some("refused_destination")),
        "refused_destination_scheme" => (literal("http://example.com/"), Some("refused_destination")),
        "refused_destination_dns" => {
            let address = match &*row["id"] {
                "H117" => "::ffff:127.0.0.1",
                "H118" => "64:ff9b::a9fe:a9fe",
                _ => "10.1.2.3",
            };
            (resolved_strictly(&ca, Found::at(&[address])).await, Some("refused_destination"))
        }
        "dns_mixed_public_and_refused" => {
            let mixed = Found::at(&["93.184.216.34", "10.0.0.5"]);
            (resolved_strictly(&ca, mixed).await, Some("refused_destination"))
        }
        "redirect_to_refused" => {
            let answer = http("302 Found", &["Location: https://10.0.0.1/"], "");
            (received(&ca, vec![Step::Send(answer)]).await, Some("302"))
        }
        "tls_handshake_failed" => (plain_text_peer(&ca).await, Some("tls")),
        "tls_bad_certificate" => (presented(&ca, &Ca::new(), "127.0.0.1").await, Some("tls")),
        "tls_name_mismatch" => (presented(&ca, &ca, "rp.example").await, Some("tls")),
        "closed_before_response" => (received(&ca, vec![]).await, Some("connection")),
        "malformed_response" => (received(&ca, said("SSH-2.0-OpenSSH\r\n\r\n")).await, Some("protocol")),
        "header_too_large" => (received(&ca, vec![Step::Send(http("200 OK", &[&big], ""))]).await, Some("protocol")),
        "body_timeout_after_200" => (received(&ca, stalled()).await, None),
        "oversized_body" if row["status"] == "200" => (received(&ca, endless("200 OK")).await, None),
        "oversized_body" => (received(&ca, endless("503 Busy")).await, Some("503")),
        "truncated_body" => {
            let answer = http("500 Oops", &["Content-Length: 9"], "half");
            (received(&ca, vec![Step::Send(answer)]).await, Some("500"))
        }
        other => panic!("{}: no stage for {other}", row["id"]),
    }
}

async fn judged(ca: &Ca, port: u16) -> Outcome {
    let attempt = post(&impatient(config(ca)), &destination(&format!("https://127.0.0.1:{port}/"))).await;
    judge(&attempt)
}

async fn received(ca: &Ca, steps: Vec<Step>) -> Outcome {
    presenting(ca, ca, "127.0.0.1", steps).await
}

async fn presented(ca: &Ca, issuer: &Ca, name: &str) -> Outcome {
    presenting(ca, issuer, name, vec![Step::Send(http("200 OK", &[], ""))]).await
}

/// Reads the body too, which may change nothing.
async fn presenting(ca: &Ca, issuer: &Ca, name: &str, steps: Vec<Step>) -> Outcome {
    let receiver = Receiver::start(issuer.certify(&[name]), steps).await;
    let attempt = post(&impatient(config(ca)), &at(&receiver, "/")).await;
    let outcome = judge(&attempt);
    if let Ok(reply) = attempt {
        let _ = reply.body(usize::MAX).await;
    }
    outcome
}

async fn resolved(ca: &Ca, found: Found) -> Outcome {
    let dns = Dns::saying(found).await;
    let client = impatient(HttpsConfig { name_server: Some(dns.address()), ..config(ca) });
    judge(&post(&client, &destination("https://rp.example/")).await)
}

async fn resolved_strictly(ca: &Ca, found: Found) -> Outcome {
    let dns = Dns::saying(found).await;
    let policy = AddressPolicy::default();
    let client = impatient(HttpsConfig { name_server: Some(dns.address()), policy, ..config(ca) });
    judge(&post(&client, &destination("https://rp.example/")).await)
}

fn literal(url: &str) -> Outcome {
    judge(&Err(Destination::parse(url).unwrap_err().into()))
}

/// A silent host.
async fn unanswered_connect(ca: &Ca) -> Outcome {
    let silent = Unanswering::start().await;
    judged(ca, silent.port()).await
}

/// Closing with unread bytes makes the kernel send a reset.
async fn reset(ca: &Ca) -> Outcome {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let peer = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let _ = stream.read_u8().await.unwrap();
    };
    tokio::join!(judged(ca, port), peer).0
}

async fn plain_text_peer(ca: &Ca) -> Outcome {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let peer = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        tokio::io::AsyncWriteExt::write_all(&mut stream, b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
        while stream.read_u8().await.is_ok() {}
    };
    tokio::join!(judged(ca, port), peer).0
}

/// No route leads to the limited broadcast address over TCP.
async fn unreachable_host(ca: &Ca) -> Outcome {
    let mut networks = loopback().extra_networks().to_vec();
    networks.push("255.255.255.255/32".parse().unwrap());
    let policy = AddressPolicy::allowing_networks_for_tests_and_demos(networks);
    let target = Destination::parse_with("https://255.255.255.255/", &policy).unwrap();
    let client = impatient(HttpsConfig { policy, ..config(ca) });
    judge(&post(&client, &target).await)
}

#[test]
fn the_table_holds_for_every_status_there_can_be() {
    for code in 100..=999 {
        let status = postrider_actors::ReplyCode::new(code).unwrap();
        let wait = Some(Duration::from_secs(7));
        let reason = Reason::Code(status);
        let expected = match code {
            200..=299 => Outcome::Succeeded,
            408 | 429 | 500..=599 => Outcome::Retry { reason, not_before: wait },
            _ => Outcome::Failed { reason },
        };
        assert_eq!(classify(status, wait), expected, "{code}");
    }
    let retried = [Reason::Dns, Reason::Connection, Reason::Timeout, Reason::Tls, Reason::Protocol];
    for reason in retried {
        assert_eq!(judge(&Err(reason)), Outcome::retry(reason));
    }
    assert_eq!(judge(&Err(Reason::RefusedDestination)), Outcome::failed(Reason::RefusedDestination));
}

#[tokio::test]
async fn a_name_that_resolves_only_to_what_is_admitted_is_delivered_to() {
    let ca = Ca::new();
    let dns = Dns::saying(Found::at(&["127.0.0.1"])).await;
    let receiver = Receiver::answering(ca.certify(&["rp.example"]), http("200 OK", &[], "")).await;
    let target = destination(&format!("https://rp.example:{}/", receiver.port()));
    assert_eq!(judge(&post(&client_asking(&ca, &dns), &target).await), Outcome::Succeeded);
}
