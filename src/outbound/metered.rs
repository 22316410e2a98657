//! A stream that stops reading after so many bytes, whatever the peer sends and in whatever frames.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Reads up to a number of bytes and then fails with [`OverLimit`].
pub(super) struct Metered<S> {
    inner: S,
    left: usize,
}

/// The peer sent more than is read of one answer.
#[derive(Debug, thiserror::Error)]
#[error("the answer is over the limit")]
pub(super) struct OverLimit;

impl<S> Metered<S> {
    pub(super) const fn new(inner: S, limit: usize) -> Self {
        Self { inner, left: limit }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Metered<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.left == 0 {
            return Poll::Ready(Err(io::Error::other(OverLimit)));
        }
        let before = buf.filled().len();
        if buf.remaining() <= self.left {
            ready!(Pin::new(&mut self.inner).poll_read(cx, buf))?;
        } else {
            let mut rest = vec![0; self.left];
            let mut part = ReadBuf::new(&mut rest);
            ready!(Pin::new(&mut self.inner).poll_read(cx, &mut part))?;
            buf.put_slice(part.filled());
        }
        let read = buf.filled().len() - before;
        self.left -= read;
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Metered<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}
