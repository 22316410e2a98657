//! A receiver that says exactly the bytes it was told to, over TLS on loopback.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::{JoinHandle, JoinSet};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::ca::Identity;

/// What a receiver does once it has read a request.
#[derive(Clone)]
pub enum Step {
    /// Writes these bytes.
    Send(Vec<u8>),
    /// Writes these bytes one at a time, so far apart.
    Trickle(Vec<u8>, Duration),
    /// Writes these bytes again and again until the client is gone.
    Flood(Vec<u8>),
    /// Says nothing until the client is gone.
    AwaitClose,
    /// Reads another request on the same connection.
    NextRequest,
}

/// One request as it came.
#[derive(Clone, Debug)]
pub struct Seen {
    pub sni: Option<String>,
    pub alpn: Option<Vec<u8>>,
    pub request: String,
}

#[derive(Default)]
struct Log {
    connections: usize,
    seen: Vec<Seen>,
    flooded: usize,
}

/// Stops when dropped.
pub struct Receiver {
    port: u16,
    log: Arc<Mutex<Log>>,
    closed: tokio::sync::Mutex<mpsc::UnboundedReceiver<()>>,
    said: Arc<Semaphore>,
    task: JoinHandle<()>,
}

/// Bytes on the wire: a status line without its version, header lines, a body.
pub fn http(status: &str, headers: &[&str], body: &str) -> Vec<u8> {
    let mut head = format!("HTTP/1.1 {status}\r\n");
    for line in headers {
        head.push_str(line);
        head.push_str("\r\n");
    }
    format!("{head}\r\n{body}").into_bytes()
}

impl Receiver {
    /// Answers every connection with the same steps.
    pub async fn start(identity: Identity, steps: Vec<Step>) -> Self {
        Self::scripted(identity, vec![steps]).await
    }

    /// Answers every connection with one answer and closes.
    pub async fn answering(identity: Identity, answer: Vec<u8>) -> Self {
        Self::start(identity, vec![Step::Send(answer)]).await
    }

    /// Answers the first connection with the first script and so on; the last one goes on for ever.
    pub async fn scripted(identity: Identity, scripts: Vec<Vec<Step>>) -> Self {
        let mut config = identity.server_config();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let log = Arc::new(Mutex::new(Log::default()));
        let (gone, closed) = mpsc::unbounded_channel();
        let said = Arc::new(Semaphore::new(0));
        let all_said = Arc::clone(&said);
        let shared = Arc::clone(&log);
        let task = tokio::spawn(async move {
            let mut serving = JoinSet::new(); // aborted with this task
            loop {
                let (tcp, _) = listener.accept().await.unwrap();
                let number = shared.lock().unwrap().connections;
                shared.lock().unwrap().connections += 1;
                let steps = scripts.get(number).or(scripts.last()).unwrap().clone();
                let serve =
                    serve(acceptor.clone(), tcp, steps, Arc::clone(&shared), gone.clone(), Arc::clone(&all_said));
                serving.spawn(serve);
            }
        });
        Self { port, log, closed: tokio::sync::Mutex::new(closed), said, task }
    }

    pub const fn port(&self) -> u16 {
        self.port
    }

    /// TCP connections taken, whatever became of them.
    pub fn connections(&self) -> usize {
        self.log.lock().unwrap().connections
    }

    /// Requests read in full.
    pub fn seen(&self) -> Vec<Seen> {
        self.log.lock().unwrap().seen.clone()
    }

    /// Bytes that a flood got rid of before the client was gone.
    pub fn flooded(&self) -> usize {
        self.log.lock().unwrap().flooded
    }

    /// Waits until a connection has been told all that its script says, and is closed where that is its end.
    pub async fn all_said(&self) {
        self.said.acquire().await.unwrap().forget();
    }

    /// Waits until a client is gone from an `AwaitClose` or a `Flood`.
    pub async fn client_gone(&self) {
        self.closed.lock().await.recv().await.unwrap();
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(
    acceptor: TlsAcceptor,
    tcp: TcpStream,
    steps: Vec<Step>,
    log: Arc<Mutex<Log>>,
    gone: mpsc::UnboundedSender<()>,
    said: Arc<Semaphore>,
) {
    let Ok(mut stream) = acceptor.accept(tcp).await else { return };
    for step in [Step::NextRequest].into_iter().chain(steps) {
        if matches!(step, Step::AwaitClose) {
            said.add_permits(1);
        }
        if perform(&mut stream, step, &log, &gone).await.is_err() {
            return;
        }
    }
    let _ = stream.shutdown().await;
    drop(stream);
    said.add_permits(1);
}

async fn perform(
    stream: &mut TlsStream<TcpStream>,
    step: Step,
    log: &Mutex<Log>,
    gone: &mpsc::UnboundedSender<()>,
) -> std::io::Result<()> {
    match step {
        Step::Send(bytes) => {
            stream.write_all(&bytes).await?;
            stream.flush().await?;
        }
        Step::Trickle(bytes, apart) => {
            let mut pace = tokio::time::interval(apart);
            for byte in bytes {
                pace.tick().await;
                stream.write_all(&[byte]).await?;
                stream.flush().await?;
            }
        }
        Step::Flood(bytes) => {
            while stream.write_all(&bytes).await.is_ok() && stream.flush().await.is_ok() {
                log.lock().unwrap().flooded += bytes.len();
            }
            let _ = gone.send(());
        }
        Step::NextRequest => {
            let request = read_request(stream).await.ok_or(std::io::ErrorKind::UnexpectedEof)?;
            let (_, tls) = stream.get_ref();
            let (sni, alpn) = (tls.server_name().map(str::to_owned), tls.alpn_protocol().map(<[u8]>::to_vec));
            log.lock().unwrap().seen.push(Seen { sni, alpn, request });
        }
        Step::AwaitClose => {
            let mut rest = [0; 1024];
            while stream.read(&mut rest).await.is_ok_and(|read| read > 0) {}
            let _ = gone.send(());
        }
    }
    Ok(())
}

/// Reads a head and the body that its Content-Length names.
async fn read_request(stream: &mut TlsStream<TcpStream>) -> Option<String> {
    let mut bytes = Vec::new();
    loop {
        let mut part = [0; 4096];
        let read = stream.read(&mut part).await.ok().filter(|read| *read > 0)?;
        bytes.extend_from_slice(&part[..read]);
        let text = String::from_utf8(bytes.clone()).unwrap();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
            return Some(text);
        }
    }
}
