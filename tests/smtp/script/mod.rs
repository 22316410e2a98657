//! A relay that does exactly what it was told at each point of a session, and remembers every byte it was sent.

mod log;
mod serve;

use std::sync::Arc;
use std::time::Duration;

use postrider::mail::smtp::{Relay, SmtpConfig};
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};
use tokio_rustls::TlsAcceptor;

use crate::outbound::Ca;
use crate::outbound::ca::Identity;

pub use log::{Log, Seen};

/// Where in a session a relay is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Point {
    Greeting,
    /// EHLO, under TLS where there is TLS.
    Ehlo,
    /// EHLO in clear, before a STARTTLS.
    EhloInClear,
    StartTls,
    Auth,
    /// The answer to a 334.
    AuthAnswer,
    Mail,
    Rcpt,
    Data,
    DataEnd,
    Rset,
    Quit,
    /// Anything else.
    Unknown,
}

/// What a relay does.
#[derive(Clone)]
pub enum Act {
    Say(Vec<u8>),
    /// Takes its time.
    Pause(Duration),
    /// Reads something of the client, whatever it is.
    Hear,
    /// The server's side of a TLS handshake.
    Handshake,
    /// Closes in order.
    Close,
    /// Resets the connection.
    Reset,
    /// Says nothing more, and reads until the client is gone.
    Stall,
}

/// One act: says this, with CRLF after it.
pub fn say(line: &str) -> Vec<Act> {
    vec![Act::Say(format!("{line}\r\n").into_bytes())]
}

/// What a connection is like: a relay that takes everything, but for what is said otherwise.
#[derive(Clone)]
pub struct Script {
    implicit_tls: bool,
    others: Vec<(Point, Option<usize>, Vec<Act>)>,
}

impl Script {
    /// In clear.
    pub fn clear() -> Self {
        Self { implicit_tls: false, others: Vec::new() }
    }

    /// TLS from the first byte.
    pub fn tls() -> Self {
        Self { implicit_tls: true, others: Vec::new() }
    }

    /// STARTTLS is offered.
    pub fn start_tls() -> Self {
        Self::clear().on(Point::EhloInClear, say("250-relay.example\r\n250-AUTH PLAIN LOGIN\r\n250 STARTTLS"))
    }

    /// Does this whenever it comes to this point.
    pub fn on(mut self, point: Point, acts: Vec<Act>) -> Self {
        self.others.push((point, None, acts));
        self
    }

    /// Does this when it comes to this point of a connection for the nth time, from 0.
    pub fn nth(mut self, point: Point, nth: usize, acts: Vec<Act>) -> Self {
        self.others.push((point, Some(nth), acts));
        self
    }

    /// Offers these extensions.
    pub fn offering(self, extensions: &[&str]) -> Self {
        let mut lines = vec!["relay.example"];
        lines.extend(extensions);
        let (last, rest) = lines.split_last().unwrap();
        let rest: String = rest.iter().map(|line| format!("250-{line}\r\n")).collect();
        self.on(Point::Ehlo, say(&format!("{rest}250 {last}")))
    }

    fn acts(&self, point: Point, nth: usize) -> Vec<Act> {
        let mut said = self.others.iter().rev();
        let said = said.find(|(at, when, _)| *at == point && when.is_none_or(|when| when == nth));
        said.map_or_else(|| usual(point, nth), |(_, _, acts)| acts.clone())
    }
}

fn usual(point: Point, nth: usize) -> Vec<Act> {
    match point {
        Point::Greeting => say("220 relay.example ESMTP"),
        Point::Ehlo => say("250-relay.example\r\n250-PIPELINING\r\n250-AUTH PLAIN LOGIN\r\n250 SIZE 1000000"),
        Point::EhloInClear => say("250 relay.example"),
        Point::StartTls => [say("220 go"), vec![Act::Handshake]].concat(),
        Point::Auth | Point::AuthAnswer if nth > 0 => say("235 welcome"),
        Point::Auth => say("235 welcome"),
        Point::AuthAnswer => say("334 UGFzc3dvcmQ6"),
        Point::Data => say("354 go"),
        Point::DataEnd => say("250 2.0.0 queued"),
        Point::Quit => [say("221 bye"), vec![Act::Close]].concat(),
        Point::Unknown => say("500 what"),
        Point::Mail | Point::Rcpt | Point::Rset => say("250 ok"),
    }
}

/// Stops when dropped.
pub struct Server {
    port: u16,
    log: Arc<Log>,
    task: JoinHandle<()>,
}

impl Server {
    /// Serves the first connection by the first script and so on; the last one goes on for ever. In clear alone.
    pub async fn start(scripts: Vec<Script>) -> Self {
        Self::certified(Ca::new().certify(&["127.0.0.1"]), scripts).await
    }

    /// As [`start`](Self::start), with what it presents under TLS.
    pub async fn certified(identity: Identity, scripts: Vec<Script>) -> Self {
        let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![identity.certificate], identity.key)
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let log = Arc::new(Log::default());
        let shared = Arc::clone(&log);
        let task = tokio::spawn(async move {
            let mut serving = JoinSet::new(); // aborted with this task
            loop {
                let (tcp, _) = listener.accept().await.unwrap();
                let number = shared.connected();
                let script = scripts.get(number).or(scripts.last()).unwrap().clone();
                serving.spawn(serve::serve(tcp, script, acceptor.clone(), number, Arc::clone(&shared)));
            }
        });
        Self { port, log, task }
    }

    /// One connection after the other, all like this one.
    pub async fn like(script: Script) -> Self {
        Self::start(vec![script]).await
    }

    /// Reached in clear.
    pub fn relay(&self) -> Relay {
        self.relay_by("smtp+plain://127.0.0.1")
    }

    /// Reached as the URL says, which is without port.
    pub fn relay_by(&self, url: &str) -> Relay {
        Relay::parse(&format!("{url}:{}", self.port)).unwrap()
    }

    /// Settings for this relay alone.
    pub fn config(&self) -> SmtpConfig {
        config(vec![self.relay()])
    }

    pub fn log(&self) -> &Log {
        &self.log
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Settings for these relays.
pub fn config(relays: Vec<Relay>) -> SmtpConfig {
    SmtpConfig::new(relays, "client.example.org")
}
