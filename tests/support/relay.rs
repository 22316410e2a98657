//! A TCP relay between a client and the tests' PostgreSQL, for the ways in which a network fails.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use sqlx::postgres::{PgConnectOptions, PgSslMode};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// What becomes of a connection's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Line {
    /// They pass.
    Passes,
    /// They are swallowed both ways and nothing is ever closed: a peer that is gone without a word. A connection that
    /// lost bytes so stays dead.
    Swallows,
    /// The connection is cut with a reset.
    Resets,
    /// The connection is cut in order.
    Closes,
}

#[derive(Debug, Clone, Copy)]
struct Lines {
    all: Line,
    /// Of connections that have sent a LISTEN.
    listening: Line,
}

#[derive(Debug, Default)]
struct Counts {
    connections: AtomicUsize,
    listens: AtomicUsize,
}

/// Listens on loopback until it is dropped, which cuts every connection.
pub struct Relay {
    options: PgConnectOptions,
    lines: watch::Sender<Lines>,
    counts: Arc<Counts>,
    _accepting: JoinSet<()>,
}

impl Relay {
    /// A relay to the server of `options`, which is reached by its socket.
    pub async fn start(options: &PgConnectOptions) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let socket = options.get_socket().expect("the tests' server listens on a socket");
        let server = socket.join(format!(".s.PGSQL.{}", options.get_port()));
        let options = PgConnectOptions::new_without_pgpass()
            .host("127.0.0.1")
            .port(port)
            .username(options.get_username())
            .database(options.get_database().unwrap())
            .ssl_mode(PgSslMode::Disable);
        let (lines, watched) = watch::channel(Lines { all: Line::Passes, listening: Line::Passes });
        let counts = Arc::<Counts>::default();
        let mut accepting = JoinSet::new();
        accepting.spawn(accept(listener, server, watched, Arc::clone(&counts)));
        Self { options, lines, counts, _accepting: accepting }
    }

    /// How to connect through it.
    pub fn options(&self) -> PgConnectOptions {
        self.options.clone()
    }

    /// Sets the line of every connection, there or to come.
    pub fn set(&self, line: Line) {
        self.lines.send_modify(|lines| lines.all = line);
    }

    /// Sets the line of those that listen for notifications.
    pub fn set_listening(&self, line: Line) {
        self.lines.send_modify(|lines| lines.listening = line);
    }

    /// Connections accepted so far.
    pub fn connections(&self) -> usize {
        self.counts.connections.load(Ordering::SeqCst)
    }

    /// LISTENs sent so far.
    pub fn listens(&self) -> usize {
        self.counts.listens.load(Ordering::SeqCst)
    }
}

async fn accept(listener: TcpListener, server: PathBuf, lines: watch::Receiver<Lines>, counts: Arc<Counts>) {
    let mut connections = JoinSet::new();
    loop {
        let (client, _) = listener.accept().await.unwrap();
        counts.connections.fetch_add(1, Ordering::SeqCst);
        let server = UnixStream::connect(&server).await.unwrap();
        let connection = Connection { lines: lines.clone(), counts: Arc::clone(&counts), listens: false, dead: false };
        connections.spawn(connection.relay(client, server));
        while connections.try_join_next().is_some() {}
    }
}

struct Connection {
    lines: watch::Receiver<Lines>,
    counts: Arc<Counts>,
    listens: bool,
    dead: bool,
}

impl Connection {
    fn line(&mut self) -> Line {
        let lines = *self.lines.borrow_and_update();
        match lines.all {
            Line::Passes if self.listens => lines.listening,
            line => line,
        }
    }

    async fn relay(mut self, mut client: TcpStream, mut server: UnixStream) {
        let (mut from_client, mut from_server) = ([0; 8192], [0; 8192]);
        loop {
            match self.line() {
                Line::Resets => return client.set_zero_linger().unwrap(),
                Line::Closes => return,
                Line::Swallows | Line::Passes => {}
            }
            let on = tokio::select! {
                changed = self.lines.changed() => changed.is_ok(),
                read = client.read(&mut from_client) => {
                    let sent = &from_client[..read.unwrap_or(0)];
                    if sent.windows(6).any(|bytes| bytes == b"LISTEN") {
                        self.listens = true;
                        self.counts.listens.fetch_add(1, Ordering::SeqCst);
                    }
                    !sent.is_empty() && self.forward(sent, &mut server).await
                }
                read = server.read(&mut from_server), if !self.dead => {
                    let sent = &from_server[..read.unwrap_or(0)];
                    // Of what is swallowed, the end is a part.
                    self.forward(sent, &mut client).await && (self.dead || !sent.is_empty())
                }
            };
            if !on {
                return;
            }
        }
    }

    /// Whether the connection goes on.
    async fn forward(&mut self, bytes: &[u8], to: &mut (impl AsyncWrite + AsyncRead + Unpin)) -> bool {
        match self.line() {
            Line::Passes if !self.dead => to.write_all(bytes).await.is_ok(),
            Line::Passes | Line::Swallows => {
                self.dead = true;
                true
            }
            // Cut at the top of the loop.
            Line::Resets | Line::Closes => true,
        }
    }
}
