//! The HTTPS client: one attempt, one request, one deadline.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{
    ACCEPT_ENCODING, CONNECTION, CONTENT_LENGTH, EXPECT, HOST, HeaderName, HeaderValue, TE, TRAILER, TRANSFER_ENCODING,
    UPGRADE, USER_AGENT,
};
use hyper::{HeaderMap, Method, Request, Uri};
use postrider_actors::Reason;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsConnector;

use super::address::AddressPolicy;
use super::connect::{connect, handshake};
use super::destination::Destination;
use super::exchange::{Answer, Link, NoAnswer};
use super::kept::Kept;
use super::reply::Reply;
use super::resolver::Resolver;
use super::tls::{self, TlsSetupError};

/// How the client is set up. Its default is what production wants.
#[derive(Debug, Clone)]
pub struct HttpsConfig {
    /// Which addresses may be dialled.
    pub policy: AddressPolicy,
    /// A PEM file of root certificates trusted beside the platform's.
    pub extra_roots: Option<PathBuf>,
    /// The name server to ask; `None`: those of /etc/resolv.conf, read once.
    pub name_server: Option<SocketAddr>,
    /// For the look-up and all connects together, before TLS. 5 s by default.
    pub connect_timeout: Duration,
    /// For everything, from the start of the call to the body's last byte. 10 s by default.
    pub total_timeout: Duration,
    /// How long a connection is kept for the next attempt for the same URL, after an answer that came in full; zero: not
    /// at all. 4 s by default, which is less than common receivers keep theirs.
    pub keep_for: Duration,
}

impl Default for HttpsConfig {
    fn default() -> Self {
        Self {
            policy: AddressPolicy::default(),
            extra_roots: None,
            name_server: None,
            connect_timeout: Duration::from_secs(5),
            total_timeout: Duration::from_secs(10),
            keep_for: Duration::from_secs(4),
        }
    }
}

/// The client could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum HttpsSetupError {
    /// Roots or TLS.
    #[error(transparent)]
    Tls(#[from] TlsSetupError),
    /// No name server is configured on this host, or its configuration cannot be read.
    #[error("cannot set up name resolution")]
    Resolver {
        /// What went wrong.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// Posts to third parties' destinations. Make one and share it; must be made and used within one tokio runtime.
///
/// HTTP/1.1 over TLS 1.2 or newer, straight to the addresses that the policy admitted: no proxy whatever the
/// environment says, no redirect, no second send, no content coding asked for. A connection serves one URL alone, for as
/// long as it leads to an address of the present look-up: [`HttpsConfig::keep_for`], a minute at most.
pub struct HttpsClient {
    policy: AddressPolicy,
    resolver: Resolver,
    connector: TlsConnector,
    connect_timeout: Duration,
    total_timeout: Duration,
    kept: Kept,
}

impl HttpsClient {
    /// Reads the roots and the name servers. Warns where the policy is not strict.
    ///
    /// # Errors
    /// [`HttpsSetupError`]: roots that cannot be read, or no name server.
    pub fn new(config: HttpsConfig) -> Result<Self, HttpsSetupError> {
        let mut tls = tls::client_config(config.extra_roots.as_deref())?;
        tls.alpn_protocols = vec![b"http/1.1".to_vec()];
        let resolver = Resolver::new(config.name_server)
            .map_err(|source| HttpsSetupError::Resolver { source: Box::new(source) })?;
        if !config.policy.extra_networks().is_empty() {
            tracing::warn!(
                networks = ?config.policy.extra_networks(),
                "OUTBOUND ADDRESS CHECKS ARE LOOSENED: whoever may name a destination can reach these networks; \
                 never in production"
            );
        }
        Ok(Self {
            policy: config.policy,
            resolver,
            connector: TlsConnector::from(Arc::new(tls)),
            connect_timeout: config.connect_timeout,
            total_timeout: config.total_timeout,
            kept: Kept::new(config.keep_for),
        })
    }

    /// Which addresses may be dialled.
    pub const fn policy(&self) -> &AddressPolicy {
        &self.policy
    }

    /// Posts `body` once and returns the final head. See [`send`](Self::send).
    ///
    /// # Errors
    /// Why there was no answer.
    pub async fn post(&self, destination: &Destination, headers: HeaderMap, body: Bytes) -> Result<Reply, Reason> {
        self.send(Method::POST, destination, headers, body).await
    }

    /// Sends one request once and returns the final head, whatever its status.
    ///
    /// Host, framing and connection headers are the client's own: what `headers` says of them is left out, and so is
    /// Accept-Encoding. Dropping the future ends the attempt and closes its connection.
    ///
    /// # Errors
    /// Why there was no answer: [`Reason::RefusedDestination`] (final) where an address is not admitted by the policy;
    /// [`Reason::Dns`], [`Reason::Connection`], [`Reason::Tls`], [`Reason::Protocol`]; [`Reason::Timeout`] where the
    /// connect or the total time ran out.
    pub async fn send(
        &self,
        method: Method,
        destination: &Destination,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Reply, Reason> {
        let start = Instant::now();
        let deadline = start + self.total_timeout;
        let attempt = self.attempt(start, deadline, destination, request(method, destination, headers, body)?);
        timeout_at(deadline, attempt).await.unwrap_or(Err(Reason::Timeout))
    }

    async fn attempt(
        &self,
        start: Instant,
        deadline: Instant,
        destination: &Destination,
        request: Request<Full<Bytes>>,
    ) -> Result<Reply, Reason> {
        let connect_deadline = deadline.min(start + self.connect_timeout);
        let resolved = timeout_at(connect_deadline, self.resolver.resolve(destination, &self.policy)).await;
        let addresses = resolved.unwrap_or(Err(Reason::Dns))?;
        let mut request = request;
        let url = destination.as_str();
        while let Some(link) = self.kept.take(url, &addresses) {
            match link.exchange(request).await {
                Err(NoAnswer::Unsent(unsent)) => request = *unsent,
                answered => return self.reply(answered, deadline, url),
            }
        }
        let stream = connect(&addresses, connect_deadline).await?;
        let peer = stream.peer_addr().map_err(|_| Reason::Connection)?;
        let stream = handshake(&self.connector, destination.server_name(), stream).await?;
        self.reply(Link::new(stream, peer).await?.exchange(request).await, deadline, url)
    }

    fn reply(&self, answered: Result<Answer, NoAnswer>, deadline: Instant, url: &str) -> Result<Reply, Reason> {
        match answered {
            Ok(answer) => Reply::new(answer, deadline, Some((self.kept.clone(), url.to_owned()))),
            Err(NoAnswer::Failed(reason)) => Err(reason),
            Err(NoAnswer::Unsent(_)) => Err(Reason::Connection),
        }
    }
}

/// What the client alone decides.
const OWN_HEADERS: [HeaderName; 9] =
    [ACCEPT_ENCODING, CONNECTION, CONTENT_LENGTH, EXPECT, HOST, TE, TRAILER, TRANSFER_ENCODING, UPGRADE];

fn request(
    method: Method,
    destination: &Destination,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Request<Full<Bytes>>, Reason> {
    let mut request = Request::new(Full::new(body));
    *request.method_mut() = method;
    *request.uri_mut() = Uri::from(destination.target().clone());
    *request.headers_mut() = headers;
    let headers = request.headers_mut();
    for own in OWN_HEADERS {
        headers.remove(own);
    }
    headers.insert(HOST, destination.host_header().ok_or(Reason::RefusedDestination)?);
    headers.entry(USER_AGENT).or_insert(HeaderValue::from_static(concat!("postrider/", env!("CARGO_PKG_VERSION"))));
    Ok(request)
}
