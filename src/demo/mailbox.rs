//! A mail server that keeps what it is given: the local mailbox of the demo, and of tests.

mod received;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

pub use self::received::Received;

/// More than any message here.
const LARGEST_MESSAGE: usize = 1024 * 1024;
const LONGEST_LINE: u64 = 4096;

#[derive(Default)]
struct State {
    received: Mutex<Vec<Received>>,
    refusals: Mutex<HashMap<String, Refusal>>,
    /// What AUTH PLAIN must bring; empty: no login is asked for.
    login: Mutex<String>,
    connections: AtomicUsize,
    down: AtomicBool,
    answers_to_lose: AtomicUsize,
    changed: Notify,
}

/// How a recipient is refused.
#[derive(Clone, Copy)]
struct Refusal {
    code: u16,
    once: bool,
}

impl State {
    fn loses_an_answer(&self) -> bool {
        let one_less = |left: usize| left.checked_sub(1);
        self.answers_to_lose.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less).is_ok()
    }

    fn received(&self) -> MutexGuard<'_, Vec<Received>> {
        self.received.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn refusals(&self) -> MutexGuard<'_, HashMap<String, Refusal>> {
        self.refusals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn login(&self) -> MutexGuard<'_, String> {
        self.login.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep(&self, received: Received) {
        self.received().push(received);
        self.changed.notify_one();
    }

    /// What to answer RCPT with, where it is no welcome.
    fn refusal(&self, recipient: &str) -> Option<u16> {
        let mut refusals = self.refusals();
        let refusal = *refusals.get(recipient)?;
        if refusal.once {
            refusals.remove(recipient);
        }
        Some(refusal.code)
    }
}

/// A mail server on loopback that keeps every message in memory. It ends when this is dropped, connections and all.
pub struct Mailbox {
    address: SocketAddr,
    state: Arc<State>,
    _listening: JoinSet<()>,
}

impl Mailbox {
    /// Listens on 127.0.0.1, on a port that the system chooses: with TLS from the first byte, or without.
    ///
    /// # Errors
    /// No port.
    pub async fn start(tls: Option<TlsAcceptor>) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let (address, state) = (listener.local_addr()?, Arc::<State>::default());
        let mut listening = JoinSet::new();
        listening.spawn(listen(listener, tls, Arc::clone(&state)));
        Ok(Self { address, state, _listening: listening })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What it has taken so far, in that order.
    pub fn received(&self) -> Vec<Received> {
        self.state.received().clone()
    }

    /// What it has taken for one address.
    pub fn received_by(&self, address: &str) -> Vec<Received> {
        self.state.received().iter().filter(|received| received.to == address).cloned().collect()
    }

    /// How many connections were made.
    pub fn connections(&self) -> usize {
        self.state.connections.load(Ordering::SeqCst)
    }

    /// From now on answers RCPT for `address` with `code`.
    pub fn refuse(&self, address: &str, code: u16) {
        self.state.refusals().insert(address.to_owned(), Refusal { code, once: false });
    }

    /// Answers the next RCPT for `address` with `code`, as a server does that greylists, and later ones no more.
    pub fn refuse_once(&self, address: &str, code: u16) {
        self.state.refusals().insert(address.to_owned(), Refusal { code, once: true });
    }

    /// From now on takes messages only after this login, by AUTH PLAIN (RFC 4616).
    pub fn require_login(&self, user: &str, password: &str) {
        *self.state.login() = BASE64_STANDARD.encode(format!("\0{user}\0{password}"));
    }

    /// Waits until something is taken that nobody has waited for yet.
    pub async fn changed(&self) {
        self.state.changed.notified().await;
    }

    /// Takes the next `messages`, but hangs up instead of saying so.
    pub fn lose_answers(&self, messages: usize) {
        self.state.answers_to_lose.store(messages, Ordering::SeqCst);
    }

    /// Closes every connection as soon as it is made or says something, or serves again.
    pub fn set_down(&self, down: bool) {
        self.state.down.store(down, Ordering::SeqCst);
    }
}

async fn listen(listener: TcpListener, tls: Option<TlsAcceptor>, state: Arc<State>) {
    let mut connections = JoinSet::new(); // aborted with this task
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await; // out of descriptors
            continue;
        };
        if state.down.load(Ordering::SeqCst) {
            continue;
        }
        let connection = state.connections.fetch_add(1, Ordering::SeqCst);
        let (state, tls) = (Arc::clone(&state), tls.clone());
        connections.spawn(async move {
            // A client that breaks off is none of the mailbox's business.
            let _ = greet(stream, tls, &state, connection).await;
        });
        while connections.try_join_next().is_some() {}
    }
}

async fn greet(stream: TcpStream, tls: Option<TlsAcceptor>, state: &State, connection: usize) -> io::Result<()> {
    match tls {
        Some(tls) => serve(tls.accept(stream).await?, state, connection).await,
        None => serve(stream, state, connection).await,
    }
}

async fn serve(stream: impl AsyncRead + AsyncWrite + Unpin, state: &State, connection: usize) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    let (mut from, mut to) = (None, None);
    let mut logged_in = false;
    say(&mut stream, "220 mailbox.example.com ESMTP").await?;
    while let Some(line) = read_line(&mut stream).await? {
        if state.down.load(Ordering::SeqCst) {
            return Ok(());
        }
        let command = line.get(..4).unwrap_or_default().to_ascii_uppercase();
        match command.as_str() {
            "EHLO" => {
                say(&mut stream, "250-mailbox.example.com\r\n250-8BITMIME\r\n250-SMTPUTF8\r\n250 AUTH PLAIN").await?
            }
            "AUTH" => {
                let required = state.login().clone();
                logged_in = required.is_empty() || line.split(' ').nth(2) == Some(&required);
                say(&mut stream, if logged_in { "235 2.7.0 ok" } else { "535 5.7.8 who is this?" }).await?;
            }
            "MAIL" if !logged_in && !state.login().is_empty() => say(&mut stream, "530 5.7.0 log in first").await?,
            "MAIL" => {
                (from, to) = (path(&line), None);
                say(&mut stream, "250 2.1.0 ok").await?;
            }
            "RCPT" => {
                let recipient = path(&line);
                match recipient.as_deref().and_then(|recipient| state.refusal(recipient)) {
                    Some(code) => say(&mut stream, &format!("{code} not here")).await?,
                    None => {
                        to = recipient;
                        say(&mut stream, "250 2.1.5 ok").await?;
                    }
                }
            }
            "DATA" => {
                let (Some(from), Some(to)) = (from.take(), to.take()) else {
                    say(&mut stream, "503 5.5.1 MAIL and RCPT first").await?;
                    continue;
                };
                say(&mut stream, "354 go on").await?;
                let bytes = read_message(&mut stream).await?;
                state.keep(Received { from, to, bytes, connection });
                if state.loses_an_answer() {
                    return Ok(());
                }
                say(&mut stream, "250 2.0.0 kept").await?;
            }
            "RSET" | "NOOP" => {
                (from, to) = (None, None);
                say(&mut stream, "250 2.0.0 ok").await?;
            }
            "QUIT" => return say(&mut stream, "221 2.0.0 bye").await,
            _ => say(&mut stream, "502 5.5.2 no such command").await?,
        }
    }
    Ok(())
}

async fn say(stream: &mut (impl AsyncWrite + Unpin), reply: &str) -> io::Result<()> {
    stream.write_all(format!("{reply}\r\n").as_bytes()).await?;
    stream.flush().await
}

/// A line without its end; `None` at the end of the connection.
async fn read_line(stream: &mut (impl AsyncBufReadExt + Unpin)) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    let read = (&mut *stream).take(LONGEST_LINE).read_until(b'\n', &mut line).await?;
    Ok((read > 0).then(|| String::from_utf8_lossy(&line).trim_end().to_owned()))
}

/// Up to the line with a dot alone (RFC 5321 4.5.2).
async fn read_message(stream: &mut (impl AsyncBufReadExt + Unpin)) -> io::Result<Vec<u8>> {
    let mut message = Vec::new();
    loop {
        let start = message.len();
        if (&mut *stream).take(LONGEST_LINE).read_until(b'\n', &mut message).await? == 0 || start > LARGEST_MESSAGE {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if &message[start..] == b".\r\n" {
            message.truncate(start);
            return Ok(message);
        }
        if message[start..].starts_with(b".") {
            message.remove(start);
        }
    }
}

/// What stands between the angle brackets.
fn path(line: &str) -> Option<String> {
    let (_, rest) = line.split_once('<')?;
    Some(rest.split_once('>')?.0.to_owned())
}
