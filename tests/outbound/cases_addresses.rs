//! Cases of area a: SSRF and DNS.

use std::net::SocketAddr;
use std::time::Duration;

use hickory_resolver::proto::op::ResponseCode;
use hickory_resolver::proto::rr::RecordType;
use postrider::outbound::{AddressPolicy, Destination, DestinationError, HttpsClient, HttpsConfig, judge};
use postrider_actors::{Outcome, Reason};

use crate::support::{
    Ca, Dns, Found, Receiver, client_asking, config, destination, http, impatient, post, post_fails, post_status,
};

fn refused(address: &str) -> bool {
    AddressPolicy::default().admit(SocketAddr::new(address.parse().unwrap(), 443)).is_err()
}

/// A client under the strict policy.
fn strict(ca: &Ca, dns: &Dns) -> HttpsClient {
    let (policy, name_server) = (AddressPolicy::default(), Some(dns.address()));
    HttpsClient::new(HttpsConfig { policy, name_server, ..config(ca) }).unwrap()
}

#[test]
fn c02_transition_addresses_that_carry_an_internal_ipv4_address_are_refused() {
    for address in [
        "2002:7f00:1::1",
        "2002:a9fe:a9fe::",
        "2002:c0a8:101::1",
        "::127.0.0.1",
        "::7f00:1",
        "::a00:1",
        "::ffff:0:7f00:1",
        "2001::1",
    ] {
        assert!(refused(address), "{address}");
    }
}

#[tokio::test]
async fn c04_one_resolution_per_attempt_and_the_connection_goes_to_its_addresses_only() {
    let ca = Ca::new();
    let receiver = Receiver::answering(ca.certify(&["rebind.example"]), http("200 OK", &[], "")).await;
    let target = destination(&format!("https://rebind.example:{}/", receiver.port()));
    let dns = Dns::start(|_, _, before| match before {
        0 => Found::at(&["127.0.0.9", "127.0.0.1"]), // nobody listens on the first
        _ => Found::at(&["169.254.169.254"]),
    })
    .await;
    let client = client_asking(&ca, &dns);

    assert_eq!(post_status(&client, &target).await, 200);
    assert_eq!((dns.count(RecordType::A), dns.count(RecordType::AAAA)), (1, 1), "one look-up, two addresses tried");
    let seen = receiver.seen();
    assert_eq!(seen[0].sni.as_deref(), Some("rebind.example"), "the name stays, whatever address is dialled");
    assert!(seen[0].request.contains(&format!("host: rebind.example:{}\r\n", receiver.port())));

    assert_eq!(post_fails(&client, &target).await, Reason::RefusedDestination, "the next attempt looks up again");
    assert_eq!((dns.count(RecordType::A), receiver.connections()), (2, 1));
}

#[tokio::test]
async fn c04_any_refused_address_refuses_the_whole_target() {
    let ca = Ca::new();
    for answer in [
        &["93.184.216.34", "10.0.0.5"][..],
        &["10.0.0.5", "93.184.216.34"],
        &["93.184.216.34", "fd00::1"],
        &["93.184.216.34", "2606:4700:4700::1111", "::ffff:127.0.0.1"],
    ] {
        let dns = Dns::saying(Found::at(answer)).await;
        let attempt = post(&strict(&ca, &dns), &destination("https://mixed.example/")).await;
        assert_eq!(judge(&attempt), Outcome::failed(Reason::RefusedDestination), "{answer:?}");
        assert_eq!((dns.count(RecordType::A), dns.count(RecordType::AAAA)), (1, 1));
    }
}

#[tokio::test]
async fn c04_a_refused_address_refuses_the_target_though_another_of_it_would_answer() {
    let ca = Ca::new();
    let receiver = Receiver::answering(ca.certify(&["mixed.example"]), http("200 OK", &[], "")).await;
    let dns = Dns::saying(Found::at(&["127.0.0.1", "10.0.0.5"])).await;
    let target = destination(&format!("https://mixed.example:{}/", receiver.port()));
    assert_eq!(post_fails(&client_asking(&ca, &dns), &target).await, Reason::RefusedDestination);
    assert_eq!(receiver.connections(), 0);
}

#[test]
fn c05_every_spelling_of_an_internal_ipv4_address_is_refused() {
    for host in ["0177.0.0.1", "012.0.0.1", "127.1", "2130706433", "0x7f.1", "01200034567", "169.254.43518"] {
        let parsed = Destination::parse(&format!("https://{host}/"));
        assert_eq!(parsed, Err(DestinationError::RefusedAddress), "{host}");
    }
    for host in ["1.2.3.4.5", "256.0.0.1", "foo.09", "1.2.3.08", "0x8.8.8.8"] {
        assert_eq!(Destination::parse(&format!("https://{host}/")), Err(DestinationError::BadHost), "{host}");
    }
}

#[test]
fn c06_what_the_registries_do_not_call_globally_reachable_is_refused() {
    for address in [
        "100.100.100.200",
        "100.64.0.1",
        "198.18.0.1",
        "192.0.0.8",
        "192.0.0.170",
        "192.88.99.1",
        "240.0.0.1",
        "255.255.255.255",
        "0.1.2.3",
        "fec0::1",
        "2001:db8::1",
        "3fff::1",
        "5f00::1",
        "100::1",
    ] {
        assert!(refused(address), "{address}");
    }
    for address in
        ["192.0.0.9", "192.0.0.10", "100.128.0.1", "198.20.0.1", "2001:4860:4860::8888", "2001:3::1", "2001:4:112::1"]
    {
        assert!(!refused(address), "{address}");
    }
}

#[tokio::test]
async fn c07_a_final_dot_reaches_neither_sni_nor_certificate_nor_host_header_and_bypasses_no_check() {
    let ca = Ca::new();
    let receiver = Receiver::answering(ca.certify(&["hooks.example.com"]), http("200 OK", &[], "")).await;
    let dns = Dns::saying(Found::at(&["127.0.0.1"])).await;
    let dotted = destination(&format!("https://hooks.example.com.:{}/x", receiver.port()));
    assert_eq!(dotted.as_str(), format!("https://hooks.example.com:{}/x", receiver.port()));
    assert_eq!(post_status(&client_asking(&ca, &dns), &dotted).await, 200);
    let seen = receiver.seen();
    assert_eq!(seen[0].sni.as_deref(), Some("hooks.example.com"));
    assert!(seen[0].request.contains(&format!("host: hooks.example.com:{}\r\n", receiver.port())));

    assert_eq!(Destination::parse("https://localhost./"), Err(DestinationError::RefusedAddress));
    assert_eq!(Destination::parse("https://rp.localhost./"), Err(DestinationError::RefusedAddress));
    assert_eq!(Destination::parse("https://example.com../"), Err(DestinationError::BadHost));
}

#[test]
fn c53_what_two_parsers_could_read_differently_is_refused_and_the_rest_stored_in_normal_form() {
    use DestinationError::*;
    for (url, fault) in [
        ("https://example.com:pw@169.254.169.254/", Userinfo),
        ("https://a@10.0.0.1/x", Userinfo),
        ("https://127.0.0.1:6666\\@1.1.1.1/", BadChar),
        ("https://example.com\\.evil.test/", BadChar),
        ("https://example.com\t.evil.test/", BadChar),
        ("https://example.com\r\n.evil.test/", BadChar),
        ("https:example.com", BadSyntax),
        ("https:/example.com/", BadSyntax),
        ("https:///10.0.0.1/", BadSyntax),
        ("https://example.com:0/", Port),
        ("https://example.com:65536/", Port),
        ("https://①②⑦.0.0.1/", RefusedAddress),
        ("http://example.com/", Scheme),
        ("wss://example.com/", Scheme),
        ("file:///etc/passwd", Scheme),
    ] {
        assert_eq!(Destination::parse(url), Err(fault), "{url}");
    }
    for (url, normal) in [
        ("HTTPS://EXAMPLE.com:443/", "https://example.com/"),
        ("https://example.com:22/", "https://example.com:22/"),
        ("https://exa%6dple.com/", "https://example.com/"),
        ("https://ex\u{ad}ample.com/", "https://example.com/"),
    ] {
        assert_eq!(Destination::parse(url).unwrap().as_str(), normal, "{url}");
    }
}

#[tokio::test]
async fn c53_the_check_at_send_does_not_rely_on_the_one_at_registration() {
    let ca = Ca::new();
    let dns = Dns::saying(Found::Silence).await;
    for url in ["https://127.0.0.1:9/", "https://[::1]:9/", "https://localhost:9/"] {
        let let_in_by_a_looser_policy = destination(url);
        assert_eq!(post_fails(&strict(&ca, &dns), &let_in_by_a_looser_policy).await, Reason::RefusedDestination);
    }
}

#[tokio::test]
async fn c60_a_failing_look_up_is_a_retry_of_kind_dns_and_never_a_refusal() {
    let ca = Ca::new();
    let failures = [
        Found::Code(ResponseCode::ServFail),
        Found::Code(ResponseCode::Refused),
        Found::Code(ResponseCode::NXDomain),
        Found::Code(ResponseCode::NoError),
        Found::Silence,
        Found::Alias("nowhere.example.", vec![]),
    ];
    for failure in failures {
        let dns = Dns::saying(failure).await;
        let client = impatient(HttpsConfig { name_server: Some(dns.address()), ..config(&ca) });
        let attempt = post(&client, &destination("https://rp.example/")).await;
        assert_eq!(judge(&attempt), Outcome::retry(Reason::Dns));
        assert!(!dns.asked().is_empty());
    }
}

#[tokio::test]
async fn c60_an_alias_of_an_internal_name_is_refused_for_its_address() {
    let ca = Ca::new();
    let internal = Found::Alias("internal.svc.cluster.local.", vec!["10.96.0.1".parse().unwrap()]);
    let dns = Dns::saying(internal).await;
    let attempt = post(&strict(&ca, &dns), &destination("https://hooks.example/")).await;
    assert_eq!(judge(&attempt), Outcome::failed(Reason::RefusedDestination));
}

#[tokio::test]
async fn c60_a_look_up_blocks_no_thread() {
    let ca = Ca::new();
    let dns = Dns::saying(Found::Silence).await;
    let client = impatient(HttpsConfig { name_server: Some(dns.address()), ..config(&ca) });
    let target = destination("https://rp.example/");
    let mut attempt = std::pin::pin!(post(&client, &target));
    let mut heartbeat = tokio::time::interval(Duration::from_millis(5));
    let mut beats = 0;
    let ended = loop {
        tokio::select! {
            ended = &mut attempt => break ended,
            _ = heartbeat.tick() => beats += 1,
        }
    };
    assert_eq!(judge(&ended), Outcome::retry(Reason::Dns));
    assert!(beats >= 25, "{beats} beats in 250 ms on the only thread");
}
