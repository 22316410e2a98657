//! TCP and TLS to admitted addresses, and to no others.

use std::net::SocketAddr;

use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use postrider_actors::Reason;

use super::address::PublicAddr;

/// Connects to the first admitted address that takes the connection. See [`dial`].
pub(super) async fn connect(addresses: &[PublicAddr], deadline: Instant) -> Result<TcpStream, Reason> {
    let addresses: Vec<SocketAddr> = addresses.iter().map(|address| address.socket_addr()).collect();
    dial(&addresses, deadline).await
}

/// Connects to the first address that takes the connection, each having an equal share of what is left of the time.
/// Whoever calls it answers for the addresses: of a name that a third party gave, only admitted ones are dialled.
///
/// [`Reason::Timeout`] where the time ran out for the last of them, else [`Reason::Connection`].
pub(crate) async fn dial(addresses: &[SocketAddr], deadline: Instant) -> Result<TcpStream, Reason> {
    let mut last = Reason::Connection;
    for (index, address) in addresses.iter().enumerate() {
        let left = deadline.saturating_duration_since(Instant::now());
        let still_to_try = u32::try_from(addresses.len() - index).unwrap_or(u32::MAX);
        let share = Instant::now() + left / still_to_try;
        match timeout_at(share, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => {
                let _ = stream.set_nodelay(true); // only saves a little time
                return Ok(stream);
            }
            Ok(Err(_)) => last = Reason::Connection,
            Err(_) => last = Reason::Timeout,
        }
    }
    Err(last)
}

/// The handshake. The peer must present a certificate for `name`.
///
/// [`Reason::Tls`] where TLS itself failed, [`Reason::Connection`] where the connection broke under it.
pub(crate) async fn handshake(
    connector: &TlsConnector,
    name: &ServerName<'static>,
    stream: TcpStream,
) -> Result<TlsStream<TcpStream>, Reason> {
    connector.connect(name.clone(), stream).await.map_err(
        |error| {
            if is_tls(&error) { Reason::Tls } else { Reason::Connection }
        },
    )
}

/// Whether an I/O error is TLS's own, rather than the connection's under it.
pub(crate) fn is_tls(error: &std::io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<rustls::Error>())
}
