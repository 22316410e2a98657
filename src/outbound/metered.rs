//! A stream that stops reading after so many bytes of an answer, whatever the peer sends and in whatever frames.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Reads up to a number of bytes and then fails with [`OverLimit`].
pub(super) struct Metered<S> {
    inner: S,
    left: Arc<AtomicUsize>,
}

/// Says how much of the next answer may be read.
pub(super) struct Allowance(Arc<AtomicUsize>);

impl Allowance {
    pub(super) fn set(&self, bytes: usize) {
        self.0.store(bytes, Ordering::Relaxed);
    }
}

/// The peer sent more than is read of one answer.
#[derive(Debug, thiserror::Error)]
#[error("the answer is over the limit")]
pub(super) struct OverLimit;

impl<S> Metered<S> {
    /// Reads nothing until it is allowed to.
    pub(super) fn new(inner: S) -> (Self, Allowance) {
        let left = Arc::new(AtomicUsize::new(0));
        (Self { inner, left: Arc::clone(&left) }, Allowance(left))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Metered<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let left = self.left.load(Ordering::Relaxed);
        if left == 0 {
            return Poll::Ready(Err(io::Error::other(OverLimit)));
        }
        let before = buf.filled().len();
        if buf.remaining() <= left {
            ready!(Pin::new(&mut self.inner).poll_read(cx, buf))?;
        } else {
            let mut rest = vec![0; left];
            let mut part = ReadBuf::new(&mut rest);
            ready!(Pin::new(&mut self.inner).poll_read(cx, &mut part))?;
            buf.put_slice(part.filled());
        }
        let read = buf.filled().len() - before;
        self.left.store(left - read, Ordering::Relaxed);
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
