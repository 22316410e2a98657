//! What a relay was sent.

use std::sync::Mutex;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;

/// One connection as it came.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    /// Every byte in clear; where TLS was set up, those before it.
    pub clear: Vec<u8>,
    /// Every byte under TLS.
    pub tls: Vec<u8>,
    pub sni: Option<String>,
    pub alpn: Option<Vec<u8>>,
    /// What came after each 354, up to and with the final dot.
    pub messages: Vec<Vec<u8>>,
    /// The client is gone.
    pub gone: bool,
}

impl Seen {
    /// The command lines, without their ends; of the messages, nothing.
    pub fn commands(&self) -> Vec<String> {
        let mut rest = [self.clear.as_slice(), &self.tls].concat();
        for message in &self.messages {
            let start = rest.windows(message.len()).position(|window| window == message).unwrap();
            rest.drain(start..start + message.len());
        }
        let text = String::from_utf8(rest).unwrap();
        let lines: Vec<String> =
            text.split_inclusive("\r\n").map(|line| line.trim_end_matches("\r\n").to_owned()).collect();
        assert!(text.is_empty() || text.ends_with("\r\n"), "a command without CRLF: {text:?}");
        lines
    }

    /// The first word of each command.
    pub fn verbs(&self) -> Vec<String> {
        self.commands().iter().map(|line| line.split([' ', ':']).next().unwrap().to_owned()).collect()
    }
}

/// Of all connections, in the order in which they came.
#[derive(Default)]
pub struct Log {
    connections: Mutex<Vec<Seen>>,
    changed: watch::Sender<()>,
}

impl Log {
    pub(super) fn connected(&self) -> usize {
        let number = {
            let mut connections = self.connections.lock().unwrap();
            connections.push(Seen::default());
            connections.len() - 1
        };
        self.changed.send_replace(());
        number
    }

    pub(super) fn note(&self, connection: usize, change: impl FnOnce(&mut Seen)) {
        change(&mut self.connections.lock().unwrap()[connection]);
        self.changed.send_replace(());
    }

    pub fn connections(&self) -> Vec<Seen> {
        self.connections.lock().unwrap().clone()
    }

    /// The only connection.
    pub fn only(&self) -> Seen {
        let mut all = self.connections();
        assert_eq!(all.len(), 1, "connections");
        all.remove(0)
    }

    /// Every message, over all connections.
    pub fn messages(&self) -> Vec<Vec<u8>> {
        self.connections().into_iter().flat_map(|seen| seen.messages).collect()
    }

    /// Waits until this holds of what was sent.
    pub async fn until(&self, description: &str, holds: impl Fn(&[Seen]) -> bool) {
        let mut changed = self.changed.subscribe();
        let waiting = async {
            while !holds(&self.connections()) {
                changed.changed().await.unwrap();
            }
        };
        timeout(Duration::from_secs(20), waiting).await.unwrap_or_else(|_| panic!("never: {description}"));
    }

    /// Waits until the clients of all connections are gone.
    pub async fn all_gone(&self) {
        self.until("all clients are gone", |all| all.iter().all(|seen| seen.gone)).await;
    }
}
