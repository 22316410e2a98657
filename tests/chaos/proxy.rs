//! A way to the database that can be cut: at once, in the middle of a COMMIT, or so that bytes only go nowhere.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, UnixStream};
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;

/// Each way, so that calls take long enough to be hit.
const LATENCY: Duration = Duration::from_millis(2);

/// Where a COMMIT is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommitCut {
    /// The server never hears of it.
    Before = 1,
    /// The server hears of it and its answer is lost.
    After = 2,
}

struct Shared {
    target: Mutex<PathBuf>,
    cut: Mutex<CancellationToken>,
    armed: AtomicU8,
    commits_cut: [AtomicU64; 2],
    /// From the client to the server, and back.
    stalled: [AtomicBool; 2],
}

impl Shared {
    /// Says where this chunk of a client's bytes is to be cut.
    fn cuts(&self, bytes: &[u8]) -> Option<CommitCut> {
        if !bytes.windows(7).any(|window| window == b"COMMIT\0") {
            return None;
        }
        let cut = match self.armed.swap(0, Ordering::SeqCst) {
            1 => CommitCut::Before,
            2 => CommitCut::After,
            _ => return None,
        };
        self.commits_cut[cut as usize - 1].fetch_add(1, Ordering::SeqCst);
        Some(cut)
    }
}

/// Stops when dropped, and cuts everything.
pub struct Proxy {
    port: u16,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

impl Proxy {
    pub async fn start(target: PathBuf) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::new(Shared {
            target: Mutex::new(target),
            cut: Mutex::new(CancellationToken::new()),
            armed: AtomicU8::new(0),
            commits_cut: [AtomicU64::new(0), AtomicU64::new(0)],
            stalled: [AtomicBool::new(false), AtomicBool::new(false)],
        });
        let theirs = Arc::clone(&shared);
        let task = tokio::spawn(async move {
            let mut serving = JoinSet::new(); // aborted with this task
            loop {
                let Ok((client, _)) = listener.accept().await else { continue };
                while serving.try_join_next().is_some() {}
                serving.spawn(serve(client, Arc::clone(&theirs)));
            }
        });
        Self { port, shared, task }
    }

    /// A URL for processes.
    pub fn url(&self) -> String {
        let database = crate::cluster::DATABASE;
        format!("postgresql://postgres@127.0.0.1:{}/{database}?sslmode=disable", self.port)
    }

    /// Leads new connections elsewhere, and cuts the old ones.
    pub fn lead_to(&self, target: PathBuf) {
        *self.shared.target.lock().unwrap() = target;
        self.cut_all();
    }

    pub fn cut_all(&self) {
        std::mem::take(&mut *self.shared.cut.lock().unwrap()).cancel();
    }

    /// Cuts the next COMMIT that comes by.
    pub fn arm(&self, cut: CommitCut) {
        self.shared.armed.store(cut as u8, Ordering::SeqCst);
    }

    /// How many COMMITs were cut so.
    pub fn commits_cut(&self, cut: CommitCut) -> u64 {
        self.shared.commits_cut[cut as usize - 1].load(Ordering::SeqCst)
    }

    pub fn disarm(&self) {
        self.shared.armed.store(0, Ordering::SeqCst);
    }

    /// Holds bytes of a direction back, or lets them go.
    pub fn stall(&self, direction: usize, stalled: bool) {
        self.shared.stalled[direction].store(stalled, Ordering::SeqCst);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(client: tokio::net::TcpStream, shared: Arc<Shared>) {
    let cut = shared.cut.lock().unwrap().clone();
    let target = shared.target.lock().unwrap().clone();
    let Ok(server) = UnixStream::connect(target).await else { return };
    _ = client.set_nodelay(true);
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    tokio::select! {
        () = cut.cancelled() => {}
        () = pump(from_client, to_server, &shared, 0) => {}
        () = pump(from_server, to_client, &shared, 1) => {}
    }
}

/// Ends where the connection is to be cut.
async fn pump(mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin, shared: &Shared, direction: usize) {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let Ok(read @ 1..) = from.read(&mut buffer).await else { return };
        while shared.stalled[direction].load(Ordering::SeqCst) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        tokio::time::sleep(LATENCY).await;
        let bytes = &buffer[..read];
        let cut = if direction == 0 { shared.cuts(bytes) } else { None };
        if cut == Some(CommitCut::Before) || to.write_all(bytes).await.is_err() || cut == Some(CommitCut::After) {
            return;
        }
    }
}
