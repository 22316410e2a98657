//! A stream between mail-send and the relay that lets whole, well-formed replies through and nothing else.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use postrider_actors::{Reason, ReplyCode};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::reply::{Malformed, ReplyReader};

/// What a guard found wrong; the inner error of the I/O error that it ends the session with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Fault {
    /// Bytes that are no reply, or that no command asked for.
    #[error("not of the protocol")]
    Protocol,
    /// The relay closed the connection.
    #[error("closed by the relay")]
    Closed,
    /// The relay said of itself that it ends the session (RFC 5321 3.8).
    #[error("the relay ends the session")]
    ShuttingDown,
}

impl Fault {
    pub(super) fn reason(self) -> Reason {
        match self {
            Self::Protocol => Reason::Protocol,
            Self::Closed => Reason::Connection,
            Self::ShuttingDown => ReplyCode::new(421).map_or(Reason::Connection, Reason::Code),
        }
    }
}

impl From<Fault> for io::Error {
    fn from(fault: Fault) -> Self {
        Self::other(fault)
    }
}

impl From<Malformed> for Fault {
    fn from(_: Malformed) -> Self {
        Self::Protocol
    }
}

/// Whose turn it is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// A command has been written, or the greeting is awaited.
    Relay,
    /// The reply has been handed out: the next bytes are ours, and nothing may come before them.
    Client,
}

/// One reply to one command. What comes after a reply and before the next command is never read as the answer to
/// that command (C16, C23): the reply counts, and the next write fails.
pub(super) struct Guarded<S> {
    stream: S,
    turn: Turn,
    reader: ReplyReader,
    /// Read from the relay, not looked at yet.
    input: Vec<u8>,
    /// Of a whole reply: not handed out yet.
    output: Vec<u8>,
}

impl<S> Guarded<S> {
    /// A new connection, on which the relay speaks first.
    pub(super) fn awaiting_greeting(stream: S) -> Self {
        Self { stream, turn: Turn::Relay, reader: ReplyReader::default(), input: Vec::new(), output: Vec::new() }
    }

    /// A connection whose TLS has just been set up after a STARTTLS: the client speaks first.
    pub(super) fn after_start_tls(stream: S) -> Self {
        Self { turn: Turn::Client, ..Self::awaiting_greeting(stream) }
    }

    /// Nothing is left of what the relay said, and nothing is owed by it.
    pub(super) fn is_quiet(&self) -> bool {
        self.turn == Turn::Client && self.input.is_empty() && self.output.is_empty()
    }

    /// The stream, for a TLS handshake.
    ///
    /// # Errors
    /// [`Fault::Protocol`] where bytes in clear follow the reply (RFC 3207 4.2).
    pub(super) fn into_inner(self) -> Result<S, Fault> {
        if self.is_quiet() { Ok(self.stream) } else { Err(Fault::Protocol) }
    }

    /// Moves input through the reader up to the end of a reply.
    fn parse(&mut self) -> Result<(), Fault> {
        let mut taken = 0;
        for byte in &self.input {
            taken += 1;
            if let Some(reply) = self.reader.push(*byte)? {
                self.output = reply.wire;
                break;
            }
        }
        self.input.drain(..taken);
        Ok(())
    }
}

impl<S: AsyncRead + Unpin> Guarded<S> {
    fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut bytes = [0; 4096];
        let mut buffer = ReadBuf::new(&mut bytes);
        ready!(Pin::new(&mut self.stream).poll_read(cx, &mut buffer))?;
        if buffer.filled().is_empty() {
            return Poll::Ready(Err(Fault::Closed.into()));
        }
        self.input.extend_from_slice(buffer.filled());
        Poll::Ready(Ok(()))
    }

    /// Before a command: whether the relay has said anything since its last reply.
    fn check_quiet(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        if self.input.is_empty()
            && let Poll::Ready(read) = self.poll_fill(cx)
        {
            read?;
        }
        match self.input.as_slice() {
            [] => Ok(()),
            [b'4', b'2', b'1', ..] => Err(Fault::ShuttingDown.into()),
            _ => Err(Fault::Protocol.into()),
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Guarded<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.turn == Turn::Client {
            return Poll::Ready(Err(Fault::Protocol.into())); // mail-send found no end to a whole reply
        }
        while this.output.is_empty() {
            if this.input.is_empty() {
                ready!(this.poll_fill(cx))?;
            }
            this.parse()?;
        }
        let count = this.output.len().min(buffer.remaining());
        buffer.put_slice(&this.output[..count]);
        this.output.drain(..count);
        if this.output.is_empty() {
            this.turn = Turn::Client;
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Guarded<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if this.turn == Turn::Client {
            this.check_quiet(cx)?;
            this.turn = Turn::Relay;
        }
        Pin::new(&mut this.stream).poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}
