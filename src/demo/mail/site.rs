//! The provider's pages for one-click unsubscribe, over TLS on 127.0.0.1, and a mail client's click.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::serve::Listener;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ServerConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::server::TlsStream;
use tokio_rustls::{TlsAcceptor, TlsConnector};
use url::Url;

/// How long a click waits for its answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Bound, so that its address is known, and not yet serving.
pub(super) struct Listening(TcpListener);

impl Listening {
    pub(super) async fn on(host: &str) -> io::Result<Self> {
        TcpListener::bind((host, 0)).await.map(Self)
    }

    pub(super) fn address(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }

    /// Serves until the value is dropped.
    pub(super) fn serve(self, tls: Arc<ServerConfig>, pages: Router) -> Site {
        let listener = TlsListener { tcp: self.0, tls: TlsAcceptor::from(tls) };
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            let _ = axum::serve(listener, pages).await; // it has no end of its own
        });
        Site { _serving: serving }
    }
}

pub(super) struct Site {
    _serving: JoinSet<()>,
}

struct TlsListener {
    tcp: TcpListener,
    tls: TlsAcceptor,
}

impl Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            let (stream, address) = Listener::accept(&mut self.tcp).await;
            if let Ok(stream) = self.tls.accept(stream).await {
                return (stream, address);
            }
        }
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.tcp.local_addr()
    }
}

/// What a mail client does whose user clicks on unsubscribe (RFC 8058 3.2): no cookie, no login, no page. Returns the
/// answer's status.
pub(super) async fn click(link: &str, tls: Arc<ClientConfig>) -> io::Result<u16> {
    let answered = tokio::time::timeout(PATIENCE, post_one_click(link, tls)).await;
    answered.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

async fn post_one_click(link: &str, tls: Arc<ClientConfig>) -> io::Result<u16> {
    const BODY: &str = "List-Unsubscribe=One-Click";
    let no_link = || io::Error::from(io::ErrorKind::InvalidInput);
    let url = Url::parse(link).map_err(|_| no_link())?;
    let (host, port) = url.host_str().zip(url.port_or_known_default()).ok_or_else(no_link)?;
    let name = ServerName::try_from(host.to_owned()).map_err(|_| no_link())?;
    let stream = TcpStream::connect((host, port)).await?;
    let mut stream = TlsConnector::from(tls).connect(name, stream).await?;
    let (path, length) = (url.path(), BODY.len());
    let request = format!(
        "POST {path} HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n\
         Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {length}\r\n\r\n{BODY}"
    );
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await; // some servers end without TLS's own goodbye
    let status = answer.get(9..12).and_then(|status| std::str::from_utf8(status).ok());
    status.and_then(|status| status.parse().ok()).ok_or_else(|| io::ErrorKind::InvalidData.into())
}
