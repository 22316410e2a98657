//! Outbound HTTPS to destinations that third parties name.
//!
//! The way of one attempt: [`Destination`] (checked spelling) -> `resolver` (one look-up, absolute name) ->
//! [`AddressPolicy::admit`] (every address or none) -> [`PublicAddr`] (the only thing that is dialled) -> TLS ->
//! one HTTP/1.1 exchange -> [`Reply`] or a [`Reason`](postrider_actors::Reason) -> [`judge()`].
//!
//! What is promised: one deadline covers the whole attempt; no proxy, no redirect, no connection that served another
//! URL, no hidden second send; nothing runs on once the call's future and its [`Reply`] are dropped, but what closes
//! kept connections; nothing of a URL, a header or a body is ever logged, whatever the level. What is not: dependencies
//! may log host names below INFO.

mod address;
pub(crate) mod connect;
mod destination;
mod exchange;
mod https;
mod judge;
mod kept;
mod metered;
mod registry;
mod reply;
pub(crate) mod resolver;
mod retry_after;
mod spelling;
pub(crate) mod tls;

pub use address::{AddressPolicy, PublicAddr, RefusedAddress};
pub use destination::{Destination, DestinationError};
pub use exchange::{MAX_HEAD_BYTES, MAX_HEADERS};
pub use https::{HttpsClient, HttpsConfig, HttpsSetupError};
pub use judge::{classify, judge};
pub use reply::{MAX_BODY_BYTES, Reply, ReplyBody};
pub use resolver::MAX_ADDRESSES_TRIED;
pub use retry_after::{MAX_RETRY_AFTER, retry_after};
pub use tls::TlsSetupError;

pub use hyper::body::Bytes;
pub use hyper::header;
pub use hyper::{HeaderMap, Method};

/// What a peer's bytes come to, without the network between: the way in of fuzz/. Compiled for it alone.
#[cfg(fuzzing)]
pub mod fuzzing {
    use http_body_util::Full;
    use hyper::Request;
    use postrider_actors::Reason;
    use tokio::io::{AsyncRead, AsyncWrite};
    use tokio::time::Instant;

    use std::net::SocketAddr;

    use super::exchange::{Link, NoAnswer};
    use super::{Bytes, Reply};

    /// One exchange over `stream`, as after the TLS handshake.
    ///
    /// # Errors
    /// Why there was no answer.
    pub async fn exchange<S>(stream: S, deadline: Instant) -> Result<Reply, Reason>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let peer = SocketAddr::from(([127, 0, 0, 1], 443));
        let request = Request::post("/").header("host", "receiver.example").body(Full::new(Bytes::new()));
        let request = request.map_err(|_| Reason::Protocol)?;
        match Link::new(stream, peer).await?.exchange(request).await {
            Ok(answer) => Reply::new(answer, deadline, None),
            Err(NoAnswer::Failed(reason)) => Err(reason),
            Err(NoAnswer::Unsent(_)) => Err(Reason::Connection),
        }
    }
}
