//! One attempt over the wire: what is sent, what is read, and when it ends.

use std::process::Command;
use std::time::{Duration, Instant};

use postrider::outbound::{
    AddressPolicy, Bytes, HeaderMap, HttpsClient, HttpsConfig, HttpsSetupError, MAX_BODY_BYTES, Method, ReplyBody,
    header,
};
use postrider_actors::Reason;
use rustls::ServerConfig;

use crate::support::{
    Ca, Dns, Found, Receiver, Step, at, client, client_asking, config, destination, http, impatient, loopback, post,
    post_fails, post_status,
};

#[tokio::test]
async fn a_post_carries_path_query_host_with_port_and_body_and_nothing_that_asks_for_coding() {
    let ca = Ca::new();
    let dns = Dns::saying(Found::at(&["127.0.0.1"])).await;
    let receiver = Receiver::answering(ca.certify(&["rp.example"]), http("204 No Content", &[], "")).await;
    let url = format!("https://rp.example:{}/hook/a%20b?token=x&y", receiver.port());
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, "application/x-www-form-urlencoded".parse().unwrap());
    headers.insert(header::HOST, "elsewhere.example".parse().unwrap());
    headers.insert(header::ACCEPT_ENCODING, "gzip".parse().unwrap());
    headers.insert(header::TRANSFER_ENCODING, "chunked".parse().unwrap());
    headers.insert(header::CONTENT_LENGTH, "1".parse().unwrap());
    headers.insert(header::EXPECT, "100-continue".parse().unwrap());
    let sent = client_asking(&ca, &dns).post(&destination(&url), headers, Bytes::from_static(b"a=b")).await;
    assert_eq!(sent.unwrap().status.get(), 204);

    let seen = receiver.seen();
    let [seen] = &*seen else { panic!("one request, not {}", seen.len()) };
    assert_eq!(seen.sni.as_deref(), Some("rp.example"));
    assert_eq!(seen.alpn.as_deref(), Some(&b"http/1.1"[..]));
    let mut lines: Vec<&str> = seen.request.split("\r\n").collect();
    assert_eq!(lines.remove(0), "POST /hook/a%20b?token=x&y HTTP/1.1");
    lines.sort_unstable();
    let host = format!("host: rp.example:{}", receiver.port());
    let agent = format!("user-agent: postrider/{}", env!("CARGO_PKG_VERSION"));
    let form = "content-type: application/x-www-form-urlencoded";
    assert_eq!(lines, ["", "a=b", "content-length: 3", form, &host, &agent]);
}

#[tokio::test]
async fn other_methods_and_an_empty_body_are_sent_as_they_are() {
    let ca = Ca::new();
    let receiver = Receiver::answering(ca.certify(&["127.0.0.1"]), http("204 No Content", &[], "")).await;
    for method in [Method::DELETE, Method::PATCH, Method::PUT] {
        let sent = client(&ca).send(method.clone(), &at(&receiver, "/Users/1"), HeaderMap::new(), Bytes::new()).await;
        assert_eq!(sent.unwrap().status.get(), 204);
        let request = receiver.seen().pop().unwrap().request;
        assert!(request.starts_with(&format!("{method} /Users/1 HTTP/1.1\r\n")), "{request}");
    }
}

#[tokio::test]
async fn an_address_in_the_url_needs_a_certificate_that_names_it_and_no_look_up() {
    let ca = Ca::new();
    let dns = Dns::saying(Found::Silence).await;
    let receiver = Receiver::answering(ca.certify(&["127.0.0.1"]), http("200 OK", &[], "")).await;
    assert_eq!(post_status(&client_asking(&ca, &dns), &at(&receiver, "/")).await, 200);
    assert_eq!(receiver.seen()[0].sni, None);
    assert_eq!(dns.asked(), []);
}

#[tokio::test]
async fn a_certificate_of_an_unknown_authority_or_another_name_is_a_tls_failure_and_nothing_is_sent() {
    let (ca, other) = (Ca::new(), Ca::new());
    for identity in [other.certify(&["127.0.0.1"]), ca.certify(&["127.0.0.2", "localhost"])] {
        let receiver = Receiver::answering(identity, http("200 OK", &[], "")).await;
        assert_eq!(post_fails(&client(&ca), &at(&receiver, "/")).await, Reason::Tls);
        assert_eq!(receiver.seen().len(), 0);
    }
}

#[tokio::test]
async fn no_protocol_older_than_tls_1_2_can_be_spoken() {
    let versions: Vec<_> = rustls::ALL_VERSIONS.iter().map(|version| version.version).collect();
    assert_eq!(versions, [rustls::ProtocolVersion::TLSv1_3, rustls::ProtocolVersion::TLSv1_2]);
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    assert!(ServerConfig::builder_with_provider(provider.into()).with_safe_default_protocol_versions().is_ok());
}

#[tokio::test]
async fn a_body_is_read_in_full_up_to_the_limit_and_says_when_it_is_cut() {
    let ca = Ca::new();
    let cases = [
        (http("200 OK", &["Content-Length: 5"], "hello"), MAX_BODY_BYTES, ReplyBody::Complete("hello".into())),
        (http("200 OK", &["Content-Length: 5"], "hello"), 5, ReplyBody::Complete("hello".into())),
        (http("200 OK", &["Content-Length: 5"], "hello"), 4, ReplyBody::Truncated("hell".into())),
        (http("200 OK", &["Content-Length: 9"], "hello"), 99, ReplyBody::Truncated("hello".into())),
        (
            http("200 OK", &["Transfer-Encoding: chunked"], "2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n"),
            9,
            ReplyBody::Complete("hello".into()),
        ),
        (http("200 OK", &["Transfer-Encoding: chunked"], "2\r\nhe\r\nnonsense"), 9, ReplyBody::Truncated("he".into())),
        (http("200 OK", &[], "until the end"), 99, ReplyBody::Complete("until the end".into())),
        (http("204 No Content", &[], ""), 99, ReplyBody::Complete("".into())),
    ];
    for (answer, limit, expected) in cases {
        let receiver = Receiver::answering(ca.certify(&["127.0.0.1"]), answer).await;
        let reply = post(&client(&ca), &at(&receiver, "/")).await.unwrap();
        assert_eq!(reply.body(limit).await, expected);
    }
}

#[tokio::test]
async fn a_body_that_stalls_is_cut_at_the_deadline_of_the_attempt() {
    let ca = Ca::new();
    let steps = vec![Step::Send(http("200 OK", &["Content-Length: 9"], "half")), Step::AwaitClose];
    let receiver = Receiver::start(ca.certify(&["127.0.0.1"]), steps).await;
    let begun = Instant::now();
    let reply = post(&impatient(config(&ca)), &at(&receiver, "/")).await.unwrap();
    assert_eq!(reply.body(100).await, ReplyBody::Truncated("half".into()));
    assert!((500..1500).contains(&begun.elapsed().as_millis()), "{:?}", begun.elapsed());
    receiver.client_gone().await;
}

#[tokio::test]
async fn dropping_the_call_or_its_reply_ends_the_connection_and_leaves_no_task() {
    let ca = Ca::new();
    let silent = Receiver::start(ca.certify(&["127.0.0.1"]), vec![Step::AwaitClose]).await;
    let answering = vec![Step::Send(http("200 OK", &["Content-Length: 9"], "half")), Step::AwaitClose];
    let answering = Receiver::start(ca.certify(&["127.0.0.1"]), answering).await;
    let client = client(&ca);
    let tasks = tokio::runtime::Handle::current().metrics().num_alive_tasks();

    let target = at(&silent, "/");
    let mut call = Box::pin(post(&client, &target));
    while silent.seen().is_empty() {
        tokio::select! {
            _ = &mut call => panic!("nobody answered"),
            () = tokio::task::yield_now() => {}
        }
    }
    drop(call);
    silent.client_gone().await;

    let reply = post(&client, &at(&answering, "/")).await.unwrap();
    drop(reply);
    answering.client_gone().await;
    while tokio::runtime::Handle::current().metrics().num_alive_tasks() > tasks {
        tokio::task::yield_now().await; // the receivers' own tasks are ending
    }
}

#[tokio::test]
async fn the_request_goes_to_the_next_address_where_one_does_not_answer() {
    let ca = Ca::new();
    let dns = Dns::saying(Found::at(&["127.0.0.2", "127.0.0.3", "127.0.0.1"])).await;
    let receiver = Receiver::answering(ca.certify(&["rp.example"]), http("200 OK", &[], "")).await;
    let url = format!("https://rp.example:{}/", receiver.port());
    assert_eq!(post_status(&client_asking(&ca, &dns), &destination(&url)).await, 200);
    assert_eq!(receiver.connections(), 1);
}

#[tokio::test]
async fn an_ipv6_receiver_is_reached_where_ipv4_is_refused() {
    let ca = Ca::new();
    let dns = Dns::saying(Found::at(&["127.0.0.1", "::1"])).await;
    let v4_only = Receiver::answering(ca.certify(&["rp.example"]), http("200 OK", &[], "")).await;
    let url = format!("https://rp.example:{}/", v4_only.port());
    assert_eq!(post_status(&client_asking(&ca, &dns), &destination(&url)).await, 200);
}

#[test]
fn a_client_without_usable_roots_is_not_made() {
    let ca = Ca::new();
    let missing = HttpsConfig { extra_roots: Some("/nonexistent/roots.pem".into()), ..config(&ca) };
    assert!(matches!(HttpsClient::new(missing), Err(HttpsSetupError::Tls(_))));
    let no_certificate = HttpsConfig { extra_roots: Some(env!("CARGO_MANIFEST_PATH").into()), ..config(&ca) };
    assert!(matches!(HttpsClient::new(no_certificate), Err(HttpsSetupError::Tls(_))));
}

#[tokio::test]
async fn the_default_set_up_is_strict_with_five_seconds_to_connect_and_ten_in_all() {
    let default = HttpsConfig::default();
    assert!(default.policy.extra_networks().is_empty());
    assert_eq!((default.connect_timeout, default.total_timeout), (Duration::from_secs(5), Duration::from_secs(10)));
    assert_eq!(default.keep_for, Duration::from_secs(4));
    let ca = Ca::new();
    let strict = HttpsClient::new(HttpsConfig { policy: AddressPolicy::default(), ..config(&ca) }).unwrap();
    let receiver = Receiver::answering(ca.certify(&["127.0.0.1"]), http("200 OK", &[], "")).await;
    assert_eq!(loopback().extra_networks().len(), 2);
    assert_eq!(post_fails(&strict, &at(&receiver, "/")).await, Reason::RefusedDestination);
    assert_eq!(receiver.connections(), 0, "no packet was sent");
}

async fn posts_past_any_proxy() {
    let ca = Ca::new();
    let receiver = Receiver::answering(ca.certify(&["127.0.0.1"]), http("200 OK", &[], "")).await;
    assert_eq!(post_status(&client(&ca), &at(&receiver, "/")).await, 200);
    assert_eq!(receiver.connections(), 1);
}

/// Posts in a process of its own, whose environment names a proxy: this test, run again there.
#[tokio::test]
async fn no_proxy_is_used_whatever_the_environment_says() {
    if std::env::var_os("https_proxy").is_some() {
        return posts_past_any_proxy().await;
    }
    let proxy = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    proxy.set_nonblocking(true).unwrap();
    let url = format!("http://{}", proxy.local_addr().unwrap());
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "https::no_proxy_is_used_whatever_the_environment_says"]);
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"] {
        child.env(name, &url);
    }
    let ran = child.output().unwrap();
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success() && said.contains("1 passed"), "{said}");
    assert!(proxy.accept().is_err(), "the proxy was asked");
}
