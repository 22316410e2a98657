//! What the tests share: the vectors, a certificate authority, receivers and a name server.

pub mod ca;
mod captured;
mod dns;
mod receiver;
mod unanswering;
mod vectors;

use std::time::Duration;

use postrider::outbound::{AddressPolicy, Bytes, Destination, HeaderMap, HttpsClient, HttpsConfig, Reply};
use postrider_actors::Reason;

pub use ca::Ca;
pub use captured::Captured;
pub use dns::{Dns, Found};
pub use receiver::{Receiver, Step, http};
pub use unanswering::{Unanswering, vacant};
pub use vectors::{Row, header_lines, now_of_vectors, rows, unescape};

/// Admits loopback, where the receivers are, and nothing else that is not public.
pub fn loopback() -> AddressPolicy {
    let networks = ["127.0.0.0/8", "::1/128"].map(|network| network.parse().unwrap());
    AddressPolicy::allowing_networks_for_tests_and_demos(networks.to_vec())
}

/// A client's set-up that trusts `ca`. Its name server is one that nobody runs: no test may ask the machine's.
pub fn config(ca: &Ca) -> HttpsConfig {
    HttpsConfig {
        policy: loopback(),
        extra_roots: Some(ca.path().to_owned()),
        name_server: Some("127.0.0.1:9".parse().unwrap()),
        ..HttpsConfig::default()
    }
}

pub fn client(ca: &Ca) -> HttpsClient {
    HttpsClient::new(config(ca)).unwrap()
}

/// A client that asks `dns`.
pub fn client_asking(ca: &Ca, dns: &Dns) -> HttpsClient {
    HttpsClient::new(HttpsConfig { name_server: Some(dns.address()), ..config(ca) }).unwrap()
}

/// As in a unit test: the whole attempt in half a second, the connect in a quarter.
pub fn impatient(config: HttpsConfig) -> HttpsClient {
    let (connect_timeout, total_timeout) = (Duration::from_millis(250), Duration::from_millis(500));
    HttpsClient::new(HttpsConfig { connect_timeout, total_timeout, ..config }).unwrap()
}

pub fn destination(url: &str) -> Destination {
    Destination::parse_with(url, &loopback()).unwrap()
}

/// The receiver's own address as a URL.
pub fn at(receiver: &Receiver, path: &str) -> Destination {
    destination(&format!("https://127.0.0.1:{}{path}", receiver.port()))
}

pub async fn post(client: &HttpsClient, destination: &Destination) -> Result<Reply, Reason> {
    client.post(destination, HeaderMap::new(), Bytes::from_static(b"hello=world")).await
}

/// The reason why there was no answer.
pub async fn post_fails(client: &HttpsClient, destination: &Destination) -> Reason {
    post(client, destination).await.map(|reply| reply.status).unwrap_err()
}

/// The status that came back.
pub async fn post_status(client: &HttpsClient, destination: &Destination) -> u16 {
    post(client, destination).await.unwrap().status.get()
}
