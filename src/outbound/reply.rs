//! A receiver's answer: the head at once, the body for those who want it.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use chrono::Utc;
use http_body_util::BodyExt;
use hyper::HeaderMap;
use hyper::body::{Body, Bytes, Incoming};
use hyper::header::{HeaderValue, RETRY_AFTER};
use postrider_actors::{Reason, ReplyCode};
use tokio::time::{Instant, timeout_at};

use super::exchange::{Answer, Link};
use super::kept::Kept;
use super::retry_after::retry_after;

/// Bytes of a body read at most.
pub const MAX_BODY_BYTES: usize = 64 * 1024;

/// A complete head. The status is the answer, whatever becomes of the body. Dropping it closes the connection, unless the
/// answer has come in full: then the next attempt for the destination may use it for a moment.
pub struct Reply {
    /// The status code (RFC 9110 15): final, or 101.
    pub status: ReplyCode,
    /// The wait that Retry-After asked for (RFC 9110 10.2.3), whatever the status.
    pub retry_after: Option<Duration>,
    headers: HeaderMap,
    body: Incoming,
    link: Option<Link>,
    deadline: Instant,
    /// Where the connection is kept, and under which destination.
    keep: Option<(Kept, String)>,
}

/// What was read of a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplyBody {
    /// All of it.
    Complete(Bytes),
    /// Its beginning: the limit or the deadline was reached, or the connection or the framing broke.
    Truncated(Bytes),
}

impl ReplyBody {
    /// The bytes, of which there may have been more.
    pub const fn bytes(&self) -> &Bytes {
        match self {
            Self::Complete(bytes) | Self::Truncated(bytes) => bytes,
        }
    }
}

impl Reply {
    pub(super) fn new(answer: Answer, deadline: Instant, keep: Option<(Kept, String)>) -> Result<Self, Reason> {
        let (head, body) = answer.response.into_parts();
        let status = ReplyCode::new(head.status.as_u16()).ok_or(Reason::Protocol)?;
        let lines = head.headers.get_all(RETRY_AFTER).into_iter().map(HeaderValue::as_bytes);
        let retry_after = retry_after(lines, Utc::now());
        Ok(Self { status, retry_after, headers: head.headers, body, link: answer.link, deadline, keep })
    }

    /// The headers as sent, at most [`MAX_HEADERS`](super::MAX_HEADERS). Text from a peer: not for logs nor for
    /// `last_error`.
    pub const fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// Reads up to `limit` bytes of the body, never more than [`MAX_BODY_BYTES`], until the attempt's deadline.
    /// Content codings are left as they are. Never an error: the status is known and stands.
    pub async fn body(mut self, limit: usize) -> ReplyBody {
        let limit = limit.min(MAX_BODY_BYTES);
        let mut bytes = Vec::new();
        loop {
            let frame = match timeout_at(self.deadline, next_frame(&mut self.body, &mut self.link)).await {
                Ok(Some(Ok(frame))) => frame,
                Ok(None) => return ReplyBody::Complete(bytes.into()),
                Ok(Some(Err(_))) | Err(_) => return ReplyBody::Truncated(bytes.into()),
            };
            let Ok(data) = frame.into_data() else { continue }; // trailers
            let room = limit - bytes.len();
            bytes.extend_from_slice(data.get(..room).unwrap_or(&data));
            if data.len() > room {
                return ReplyBody::Truncated(bytes.into());
            }
        }
    }
}

type Frame = hyper::Result<hyper::body::Frame<Bytes>>;

/// Waits for a frame while moving the connection's bytes.
async fn next_frame(body: &mut Incoming, link: &mut Option<Link>) -> Option<Frame> {
    if let Some(moving) = link {
        tokio::select! {
            biased;
            frame = body.frame() => return frame,
            () = moving.ended() => *link = None, // what it had read is still in the body
        }
    }
    body.frame().await
}

impl Drop for Reply {
    fn drop(&mut self) {
        let (Some(mut link), Some((kept, destination))) = (self.link.take(), self.keep.take()) else { return };
        // Of the body what is there already, such as a few words behind the head; more is not waited for.
        let (mut context, mut moved) = (Context::from_waker(Waker::noop()), false);
        while !self.body.is_end_stream() {
            match Pin::new(&mut self.body).poll_frame(&mut context) {
                Poll::Ready(Some(Ok(_))) => {}
                Poll::Ready(None) => break,
                Poll::Pending if !moved && link.moves_on() => moved = true,
                Poll::Ready(Some(Err(_))) | Poll::Pending => return,
            }
        }
        kept.put(destination, link);
    }
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reply")
            .field("status", &self.status)
            .field("retry_after", &self.retry_after)
            .finish_non_exhaustive()
    }
}
