//! How names become addresses.

use std::time::{Duration, Instant};

use hickory_resolver::proto::op::ResponseCode;
use hickory_resolver::proto::rr::RecordType;
use postrider::outbound::{HttpsClient, HttpsConfig, MAX_ADDRESSES_TRIED};
use postrider_actors::Reason;

use crate::support::{
    Ca, Dns, Found, Receiver, client_asking, config, destination, http, impatient, post_fails, post_status,
};

#[tokio::test]
async fn both_families_are_asked_for_once_under_the_absolute_name() {
    let ca = Ca::new();
    let dns = Dns::saying(Found::at(&["127.0.0.1"])).await;
    let receiver = Receiver::answering(ca.certify(&["rp.example"]), http("200 OK", &[], "")).await;
    let target = destination(&format!("https://rp.example.:{}/", receiver.port()));
    assert_eq!(post_status(&client_asking(&ca, &dns), &target).await, 200);
    let mut asked = dns.asked();
    asked.sort();
    assert_eq!(asked, [("rp.example.".into(), RecordType::A), ("rp.example.".into(), RecordType::AAAA)]);
}

#[tokio::test]
async fn a_single_label_is_asked_for_as_it_is_and_the_hosts_file_is_not_read() {
    let ca = Ca::new();
    let dns = Dns::saying(Found::Code(ResponseCode::NXDomain)).await;
    let client = client_asking(&ca, &dns);
    let hosts = std::fs::read_to_string("/etc/hosts").unwrap_or_default();
    let in_hosts_file =
        hosts.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_whitespace().nth(1));
    let machines = in_hosts_file.filter(|name| !name.contains("localhost"));
    for name in machines.chain(["intranet"]) {
        assert_eq!(post_fails(&client, &destination(&format!("https://{name}/"))).await, Reason::Dns, "{name}");
        let absolute = format!("{}.", name.to_ascii_lowercase());
        let asked = dns.asked().split_off(dns.asked().len() - 2);
        assert!(asked.iter().all(|(asked, _)| *asked == absolute), "{name}: {asked:?}");
    }
}

#[tokio::test]
async fn an_answer_is_not_kept_for_the_next_attempt() {
    let ca = Ca::new();
    let dns = Dns::saying(Found::at(&["127.0.0.1"])).await;
    let receiver = Receiver::answering(ca.certify(&["rp.example"]), http("200 OK", &[], "")).await;
    let target = destination(&format!("https://rp.example:{}/", receiver.port()));
    let client = client_asking(&ca, &dns);
    for attempt in 1..=3 {
        assert_eq!(post_status(&client, &target).await, 200);
        assert_eq!((dns.count(RecordType::A), dns.count(RecordType::AAAA)), (attempt, attempt));
    }
}

#[tokio::test]
async fn thousands_of_addresses_are_all_judged_and_only_the_first_few_dialled() {
    let ca = Ca::new();
    let receiver = Receiver::answering(ca.certify(&["rp.example"]), http("200 OK", &[], "")).await;
    let target = destination(&format!("https://rp.example:{}/", receiver.port()));
    // More do not fit in one message of DNS.
    let many: Vec<std::net::IpAddr> = (0..2000u32).map(|n| std::net::Ipv4Addr::from(0x7f01_0000 + n).into()).collect();

    let begun = Instant::now();
    let mut beyond_the_limit = many.clone();
    beyond_the_limit.insert(MAX_ADDRESSES_TRIED, "127.0.0.1".parse().unwrap());
    let dns = Dns::saying(Found::Addresses(beyond_the_limit)).await;
    assert_eq!(post_fails(&client_asking(&ca, &dns), &target).await, Reason::Connection);
    assert_eq!(receiver.connections(), 0);

    let mut within_the_limit = many.clone();
    within_the_limit.insert(MAX_ADDRESSES_TRIED - 1, "127.0.0.1".parse().unwrap());
    let dns = Dns::saying(Found::Addresses(within_the_limit)).await;
    assert_eq!(post_status(&client_asking(&ca, &dns), &target).await, 200);

    let mut one_refused = many;
    one_refused.push("10.0.0.5".parse().unwrap());
    let dns = Dns::saying(Found::Addresses(one_refused)).await;
    assert_eq!(post_fails(&client_asking(&ca, &dns), &target).await, Reason::RefusedDestination);
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn a_silent_name_server_costs_the_connect_budget_and_no_more() {
    let ca = Ca::new();
    let dns = Dns::saying(Found::Silence).await;
    let begun = Instant::now();
    let client = impatient(HttpsConfig { name_server: Some(dns.address()), ..config(&ca) });
    assert_eq!(post_fails(&client, &destination("https://rp.example/")).await, Reason::Dns);
    assert!((250..480).contains(&begun.elapsed().as_millis()), "{:?}", begun.elapsed());
    assert!(dns.count(RecordType::A) >= 1);
}

#[tokio::test]
async fn a_lost_datagram_is_asked_for_again_within_the_budget() {
    let ca = Ca::new();
    let dns = Dns::start(|_, _, before| if before == 0 { Found::Silence } else { Found::at(&["127.0.0.1"]) }).await;
    let receiver = Receiver::answering(ca.certify(&["rp.example"]), http("200 OK", &[], "")).await;
    let target = destination(&format!("https://rp.example:{}/", receiver.port()));
    assert_eq!(post_status(&client_asking(&ca, &dns), &target).await, 200);
}

#[tokio::test]
async fn the_machines_name_servers_are_taken_where_none_is_configured() {
    let ca = Ca::new();
    let made = HttpsClient::new(HttpsConfig { name_server: None, ..config(&ca) });
    let configured = std::fs::read_to_string("/etc/resolv.conf").is_ok_and(|text| text.contains("nameserver"));
    assert_eq!(made.is_ok(), configured);
}
