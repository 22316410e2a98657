//! One request and the head of its answer, over a connection.

use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Waker};

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use postrider_actors::Reason;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Instant;

use super::connect::is_tls;
use super::metered::{Allowance, Metered, OverLimit};
use super::reply::MAX_BODY_BYTES;

/// Bytes of status line and headers read at most; a longer head is [`Reason::Protocol`].
pub const MAX_HEAD_BYTES: usize = 64 * 1024;

/// Header lines taken at most; more are [`Reason::Protocol`].
pub const MAX_HEADERS: usize = 100;

/// The future that moves bytes. It is polled by whoever waits for them, never spawned.
type Connection = Pin<Box<dyn Future<Output = hyper::Result<()>> + Send>>;

/// A connection to a peer, which serves one exchange after the other. Dropping it closes it.
pub(super) struct Link {
    sender: SendRequest<Full<Bytes>>,
    connection: Connection,
    allowance: Allowance,
    peer: SocketAddr,
    made: Instant,
}

/// A complete head, with what is needed to read on. Dropping it closes the connection.
pub(super) struct Answer {
    pub(super) response: Response<Incoming>,
    /// `None` once the connection has ended; what it had read is in the response's body.
    pub(super) link: Option<Link>,
}

/// Why there is no answer.
pub(super) enum NoAnswer {
    /// Nothing of the request was written: the connection had ended before.
    Unsent(Box<Request<Full<Bytes>>>),
    Failed(Reason),
}

impl Link {
    /// Over a stream that is ready for HTTP/1.1.
    pub(super) async fn new<S>(stream: S, peer: SocketAddr) -> Result<Self, Reason>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (stream, allowance) = Metered::new(stream);
        let (sender, connection) = http1::Builder::new()
            .max_buf_size(MAX_HEAD_BYTES) // of a head that never ends
            .max_header_size(MAX_HEAD_BYTES) // of one that came in a single read
            .max_headers(MAX_HEADERS)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(|error| reason_of(&error))?;
        Ok(Self { sender, connection: Box::pin(connection), allowance, peer, made: Instant::now() })
    }

    /// Where it leads to.
    pub(super) const fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// When it was made.
    pub(super) const fn made(&self) -> Instant {
        self.made
    }

    /// Sends the request and waits for the final head; interim ones (RFC 9110 15.2) are skipped.
    ///
    /// In all, interim heads included, no more than [`MAX_HEAD_BYTES`] and [`MAX_BODY_BYTES`] together are read.
    pub(super) async fn exchange(mut self, request: Request<Full<Bytes>>) -> Result<Answer, NoAnswer> {
        self.allowance.set(MAX_HEAD_BYTES + MAX_BODY_BYTES);
        let (result, stands) = {
            let mut response = std::pin::pin!(self.sender.try_send_request(request));
            tokio::select! {
                biased;
                result = &mut response => (result, true),
                _ = &mut self.connection => (response.await, false), // why it ended comes out of the response
            }
        };
        match result {
            Ok(response) => Ok(Answer { response, link: stands.then_some(self) }),
            Err(mut error) => Err(match error.take_message() {
                Some(request) => NoAnswer::Unsent(Box::new(request)),
                None => NoAnswer::Failed(reason_of(&error.into_error())),
            }),
        }
    }

    /// Moves bytes until the connection ends.
    pub(super) async fn ended(&mut self) {
        let _ = (&mut self.connection).await;
    }

    /// Whether it stands, the last exchange is over, and the peer has said nothing since. Waits for nothing.
    pub(super) fn is_quiet(&mut self) -> bool {
        self.allowance.set(1); // what comes unasked for ends it
        self.moves_on() && self.sender.is_ready()
    }

    /// Moves what bytes there are; false where the connection has ended.
    pub(super) fn moves_on(&mut self) -> bool {
        self.connection.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending()
    }
}

fn reason_of(error: &hyper::Error) -> Reason {
    if error.is_parse() {
        return Reason::Protocol;
    }
    let mut cause: Option<&(dyn Error + 'static)> = error.source();
    while let Some(current) = cause {
        if let Some(io) = current.downcast_ref::<io::Error>() {
            return reason_of_io(io);
        }
        cause = current.source();
    }
    Reason::Connection
}

fn reason_of_io(error: &io::Error) -> Reason {
    if is_tls(error) {
        Reason::Tls
    } else if error.get_ref().is_some_and(|inner| inner.is::<OverLimit>()) {
        Reason::Protocol
    } else {
        Reason::Connection
    }
}
