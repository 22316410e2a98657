//! As much of HTTP/1.1 as a receiver of logout tokens needs (RFC 9112).

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::behaviour::Answer;

/// No request of a logout token is longer.
const MAX_REQUEST_BYTES: usize = 64 * 1024;

/// Where the redirecting receiver sends its visitors.
pub(super) const ELSEWHERE: &str = "/elsewhere";

/// A request, read in full.
pub(super) struct Request {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) content_type: Option<String>,
    pub(super) body: Vec<u8>,
}

/// Reads one request; `None` where the peer is gone before its end, or what it sends is none.
pub(super) async fn read(stream: &mut (impl AsyncRead + Unpin)) -> Option<Request> {
    let mut bytes = Vec::new();
    let head_length = loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end + 4;
        }
        read_more(stream, &mut bytes).await?;
    };
    let head = String::from_utf8(bytes[..head_length].to_vec()).ok()?;
    let mut lines = head.lines();
    let mut words = lines.next()?.split(' ').map(str::to_owned);
    let (method, path) = (words.next()?, words.next()?);
    let header = |name: &str| {
        let fields = head.lines().skip(1).filter_map(|line| line.split_once(':'));
        let value = |(field, value): (&str, &str)| field.eq_ignore_ascii_case(name).then(|| value.trim().to_owned());
        fields.filter_map(value).next()
    };
    let length: usize = header("content-length")?.parse().ok()?;
    while bytes.len() < head_length.checked_add(length)? {
        read_more(stream, &mut bytes).await?;
    }
    let body = bytes[head_length..head_length + length].to_vec();
    Some(Request { method, path, content_type: header("content-type"), body })
}

async fn read_more(stream: &mut (impl AsyncRead + Unpin), bytes: &mut Vec<u8>) -> Option<()> {
    let read = stream.read_buf(bytes).await.ok()?;
    (read > 0 && bytes.len() <= MAX_REQUEST_BYTES).then_some(())
}

/// Gives the answer, waiting where it is one that waits, and ends the connection.
pub(super) async fn answer(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), answer: Answer) -> io::Result<()> {
    let (status, header) = match answer {
        Answer::Status(status) => (status, String::new()),
        Answer::StatusAfter(status, wait) => {
            tokio::time::sleep(wait).await;
            (status, String::new())
        }
        Answer::RetryAfter(status, wait) => (status, format!("retry-after: {}\r\n", wait.as_secs())),
        Answer::Redirect => (302, format!("location: {ELSEWHERE}\r\n")),
        Answer::Silence => {
            let mut rest = [0; 256];
            while stream.read(&mut rest).await? > 0 {}
            return Ok(());
        }
        Answer::HangUp => return Ok(()),
    };
    // OpenID Connect Back-Channel Logout 1.0, 2.8: no cache may keep it.
    let length = if status == 204 { "" } else { "content-length: 0\r\n" };
    let head = format!("HTTP/1.1 {status} \r\ncache-control: no-store\r\n{length}{header}\r\n");
    stream.write_all(head.as_bytes()).await?;
    stream.shutdown().await
}
