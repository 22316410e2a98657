//! Who is posted to: writes down each request that it has read in full, then answers by a script that the seed decides.

use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use serde::Serialize;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use uuid::Uuid;

use crate::ca::Ca;
use crate::channel::Message;
use crate::clock::Clock;
use crate::dice::Dice;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub enum Answer {
    Success,
    Retry,
    Refuse,
    /// Hung, dropped or reset.
    Nothing,
}

#[derive(Debug, Clone, Serialize)]
pub struct Received {
    pub delivery: Uuid,
    pub attempt: u32,
    pub replica: u32,
    pub channel: usize,
    pub content: u64,
    /// Since the run began.
    pub at: Duration,
    pub answer: Answer,
}

struct Shared {
    clock: Clock,
    seed: u64,
    out: AtomicBool,
    deaf: AtomicBool,
    only_success: AtomicBool,
    turned_away: AtomicU64,
    /// In the order of the lines of the file.
    received: Mutex<(Vec<Received>, File)>,
}

/// Stops when dropped.
pub struct Receiver {
    port: u16,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

impl Receiver {
    pub async fn start(ca: &Ca, clock: Clock, seed: u64, file: &Path) -> Self {
        let identity = ca.certify(&["127.0.0.1"]);
        let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![identity.certificate], identity.key)
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::new(Shared {
            clock,
            seed,
            out: AtomicBool::new(false),
            deaf: AtomicBool::new(false),
            only_success: AtomicBool::new(false),
            turned_away: AtomicU64::new(0),
            received: Mutex::new((Vec::new(), File::create(file).unwrap())),
        });
        let theirs = Arc::clone(&shared);
        let task = tokio::spawn(async move {
            let mut serving = JoinSet::new(); // aborted with this task
            loop {
                let Ok((tcp, _)) = listener.accept().await else { continue };
                while theirs.deaf.load(Ordering::SeqCst) {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                while serving.try_join_next().is_some() {}
                if theirs.out.load(Ordering::SeqCst) {
                    theirs.turned_away.fetch_add(1, Ordering::SeqCst);
                } else {
                    serving.spawn(serve(acceptor.clone(), tcp, Arc::clone(&theirs)));
                }
            }
        });
        Self { port, shared, task }
    }

    pub fn url(&self) -> String {
        format!("https://127.0.0.1:{}/", self.port)
    }

    /// Turns everybody away.
    pub fn set_out(&self, out: bool) {
        self.shared.out.store(out, Ordering::SeqCst);
    }

    /// Lets everybody connect and reads nothing of what they send until it hears again.
    pub fn set_deaf(&self, deaf: bool) {
        self.shared.deaf.store(deaf, Ordering::SeqCst);
    }

    /// How many it turned away while it was out.
    pub fn turned_away(&self) -> u64 {
        self.shared.turned_away.load(Ordering::SeqCst)
    }

    /// From now on it says yes to everything.
    pub fn only_success(&self) {
        self.shared.only_success.store(true, Ordering::SeqCst);
    }

    pub fn received(&self) -> Vec<Received> {
        self.shared.received.lock().unwrap().0.clone()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What the script says of one attempt: an answer, its words, and how long it takes.
fn answer(shared: &Shared, message: &Message) -> (Answer, &'static str, Duration) {
    if shared.only_success.load(Ordering::SeqCst) {
        return (Answer::Success, "204 No Content", Duration::ZERO);
    }
    let mut hasher = DefaultHasher::new();
    (message.text, message.attempt).hash(&mut hasher);
    let mut dice = Dice::new(shared.seed, hasher.finish());
    let thinks_for = dice.millis(0, 60);
    let (answer, text) = match dice.below(100) {
        0..80 => (Answer::Success, "204 No Content"),
        80..86 => (Answer::Retry, "503 Service Unavailable"),
        86..89 => (Answer::Retry, "429 Too Many Requests\r\nretry-after: 1"),
        89..92 => (Answer::Refuse, "410 Gone"),
        92..94 => (Answer::Nothing, "hang"),
        94..97 => (Answer::Nothing, ""),
        _ => (Answer::Nothing, "2"),
    };
    (answer, text, thinks_for)
}

async fn serve(acceptor: TlsAcceptor, tcp: TcpStream, shared: Arc<Shared>) {
    let Ok(mut stream) = acceptor.accept(tcp).await else { return };
    let Some(message) = request(&mut stream).await else { return };
    let (answer, text, thinks_for) = answer(&shared, &message);
    let mut hasher = DefaultHasher::new();
    (message.delivery, message.text, message.channel).hash(&mut hasher);
    let received = Received {
        delivery: message.delivery,
        attempt: message.attempt,
        replica: message.replica,
        channel: message.channel,
        content: hasher.finish(),
        at: shared.clock.now(),
        answer,
    };
    {
        let (all, file) = &mut *shared.received.lock().unwrap();
        writeln!(file, "{}", serde_json::to_string(&received).unwrap()).unwrap();
        all.push(received);
    }
    tokio::time::sleep(thinks_for).await;
    match (answer, text) {
        (Answer::Nothing, "hang") => _ = stream.read_u8().await,
        // Reset in the middle of the answer, or before it.
        (Answer::Nothing, beginning) => {
            if !beginning.is_empty() {
                _ = stream.write_all(b"HTTP/1.1 2").await;
                _ = stream.flush().await;
            }
        }
        (_, status) => {
            let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            _ = stream.write_all(answer.as_bytes()).await;
            _ = stream.shutdown().await;
        }
    }
}

/// A request with its body; none where it did not come in full.
async fn request(stream: &mut TlsStream<TcpStream>) -> Option<Message> {
    let mut bytes = Vec::new();
    loop {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
        let Some(head) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else { continue };
        let length = String::from_utf8_lossy(&bytes[..head]).lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
        })?;
        if let Some(body) = bytes.get(head + 4..head + 4 + length) {
            return serde_json::from_slice(body).ok();
        }
    }
}
