//! One request and the head of its answer, over one connection that serves nothing else.

use std::error::Error;
use std::io;
use std::pin::Pin;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use postrider_actors::Reason;
use tokio::io::{AsyncRead, AsyncWrite};

use super::connect::is_tls;
use super::metered::{Metered, OverLimit};
use super::reply::MAX_BODY_BYTES;

/// Bytes of status line and headers read at most; a longer head is [`Reason::Protocol`].
pub const MAX_HEAD_BYTES: usize = 64 * 1024;

/// Header lines taken at most; more are [`Reason::Protocol`].
pub const MAX_HEADERS: usize = 100;

/// The future that moves bytes. It is polled by whoever waits for them, never spawned.
pub(super) type Connection = Pin<Box<dyn Future<Output = hyper::Result<()>> + Send>>;

/// A complete head, with what is needed to read on. Dropping it closes the connection.
pub(super) struct Answer {
    pub(super) response: Response<Incoming>,
    /// `None` once the connection has ended; what it had read is in the response's body.
    pub(super) connection: Option<Connection>,
}

/// Sends the request and waits for the final head; interim ones (RFC 9110 15.2) are skipped.
///
/// In all, interim heads included, no more than [`MAX_HEAD_BYTES`] and [`MAX_BODY_BYTES`] together are read.
pub(super) async fn exchange<S>(stream: S, request: Request<Full<Bytes>>) -> Result<Answer, Reason>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let io = TokioIo::new(Metered::new(stream, MAX_HEAD_BYTES + MAX_BODY_BYTES));
    let (mut sender, connection) = http1::Builder::new()
        .max_buf_size(MAX_HEAD_BYTES) // of a head that never ends
        .max_header_size(MAX_HEAD_BYTES) // of one that came in a single read
        .max_headers(MAX_HEADERS)
        .handshake(io)
        .await
        .map_err(|error| reason_of(&error))?;
    let mut connection: Connection = Box::pin(connection);
    let mut response = std::pin::pin!(sender.send_request(request));
    let (result, connection) = tokio::select! {
        biased;
        result = &mut response => (result, Some(connection)),
        _ = &mut connection => (response.await, None), // why it ended comes out of the response
    };
    let response = result.map_err(|error| reason_of(&error))?;
    Ok(Answer { response, connection })
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
