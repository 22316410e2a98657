//! One connection to a relay, from the look-up to where it can take a message.

use std::time::Duration;

use mail_send::{Credentials, SmtpClient};
use postrider_actors::Reason;
use smtp_proto::{AUTH_LOGIN, AUTH_PLAIN, EXT_START_TLS, EhloResponse};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_rustls::TlsConnector;

use super::config::StageTimeouts;
use super::guard::{Fault, Guarded};
use super::judge::{reason_of, unexpected};
use super::relay::{Relay, Security};
use super::resolver::Resolver;
use crate::outbound::connect::{dial, handshake};

/// TCP, with TLS or without.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

pub(super) type Client<S> = SmtpClient<Guarded<S>>;

/// A session that is past EHLO, TLS and AUTH.
pub(super) struct Connection {
    pub(super) client: Client<Box<dyn Stream>>,
    /// What the relay offers: the list that it gave under TLS, where there is TLS (RFC 3207 4.2).
    pub(super) offers: EhloResponse<String>,
}

/// What every connection is made with.
pub(super) struct Opener {
    pub(super) resolver: Resolver,
    /// `None`: no relay wants TLS.
    pub(super) connector: Option<TlsConnector>,
    pub(super) helo: String,
    pub(super) stages: StageTimeouts,
}

/// Runs one step within its own time and the attempt's.
pub(super) async fn within<T>(
    deadline: Instant,
    stage: Duration,
    step: impl Future<Output = Result<T, Reason>>,
) -> Result<T, Reason> {
    timeout_at(deadline.min(Instant::now() + stage), step).await.unwrap_or(Err(Reason::Timeout))
}

impl Opener {
    /// Connects and sets up a session. Whatever fails before it stands, the connection is dropped as it is: nothing of
    /// a message, and no login but over TLS or to this machine, has gone out.
    pub(super) async fn open(&self, relay: &Relay, deadline: Instant) -> Result<Connection, Reason> {
        let tcp = self.connect(relay, deadline).await?;
        let (client, offers) = match relay.security() {
            Security::Implicit => self.greeted(self.secure(relay, tcp, deadline).await?, deadline).await?,
            Security::StartTls => self.start_tls(relay, tcp, deadline).await?,
            Security::Plain => self.greeted(Box::new(tcp) as Box<dyn Stream>, deadline).await?,
        };
        let mut connection = Connection { client, offers };
        if let Some(credentials) = relay.credentials() {
            self.log_in(&mut connection, credentials, deadline).await?;
        }
        Ok(connection)
    }

    async fn connect(&self, relay: &Relay, deadline: Instant) -> Result<TcpStream, Reason> {
        let deadline = deadline.min(Instant::now() + self.stages.connect);
        let addresses = timeout_at(deadline, self.resolver.resolve(relay)).await.unwrap_or(Err(Reason::Dns))?;
        dial(&addresses, deadline).await
    }

    async fn secure(&self, relay: &Relay, tcp: TcpStream, deadline: Instant) -> Result<Box<dyn Stream>, Reason> {
        let (Some(connector), Some(name)) = (&self.connector, relay.server_name()) else { return Err(Reason::Tls) };
        Ok(Box::new(within(deadline, self.stages.tls, handshake(connector, &name, tcp)).await?))
    }

    /// Reads the greeting of a new connection and says EHLO.
    pub(super) async fn greeted<S: Stream>(
        &self,
        stream: S,
        deadline: Instant,
    ) -> Result<(Client<S>, EhloResponse<String>), Reason> {
        let mut client = client(Guarded::awaiting_greeting(stream));
        within(deadline, self.stages.reply, async {
            let greeting = client.read().await.map_err(|error| reason_of(&error))?;
            if greeting.is_positive_completion() { Ok(()) } else { Err(unexpected(greeting.code)) }
        })
        .await?;
        let offers = self.say_ehlo(&mut client, deadline).await?;
        Ok((client, offers))
    }

    async fn say_ehlo<S: Stream>(
        &self,
        client: &mut Client<S>,
        deadline: Instant,
    ) -> Result<EhloResponse<String>, Reason> {
        let ehlo = async { client.ehlo(&self.helo).await.map_err(|error| reason_of(&error)) };
        within(deadline, self.stages.reply, ehlo).await
    }

    /// What was said in clear is forgotten, and bytes in clear after the reply end the session (RFC 3207 4.2).
    async fn start_tls(
        &self,
        relay: &Relay,
        tcp: TcpStream,
        deadline: Instant,
    ) -> Result<(Client<Box<dyn Stream>>, EhloResponse<String>), Reason> {
        let (mut client_in_clear, offers_in_clear) = self.greeted(tcp, deadline).await?;
        if !offers_in_clear.has_capability(EXT_START_TLS) {
            return Err(Reason::Tls);
        }
        within(deadline, self.stages.reply, command(&mut client_in_clear, "STARTTLS\r\n")).await?;
        let tcp = client_in_clear.stream.into_inner().map_err(Fault::reason)?;
        let mut client = client(Guarded::after_start_tls(self.secure(relay, tcp, deadline).await?));
        let offers = self.say_ehlo(&mut client, deadline).await?;
        Ok((client, offers))
    }

    /// AUTH PLAIN or else LOGIN, as offered (RFC 4954 4). Neither offered: [`Reason::Protocol`].
    pub(super) async fn log_in(
        &self,
        connection: &mut Connection,
        credentials: &Credentials<String>,
        deadline: Instant,
    ) -> Result<(), Reason> {
        let Connection { client, offers } = connection;
        // One mechanism, once: mail-send would go on to the next after a refusal.
        let offered = offers.auth_mechanisms;
        let chosen = if offered & AUTH_PLAIN == 0 { AUTH_LOGIN } else { AUTH_PLAIN };
        let choice = EhloResponse { auth_mechanisms: offered & chosen, ..EhloResponse::new(String::new()) };
        let login = async { client.authenticate(credentials, &choice).await.map(|_| ()).map_err(|e| reason_of(&e)) };
        within(deadline, self.stages.reply, login).await
    }
}

impl Connection {
    /// Whether an idle connection still takes commands (RFC 5321 4.1.1.5).
    pub(super) async fn is_alive(&mut self, deadline: Instant, stages: &StageTimeouts) -> bool {
        within(deadline, stages.reply, command(&mut self.client, "RSET\r\n")).await.is_ok()
    }

    /// Ends the session in order (RFC 5321 4.1.1.10). Nobody waits: what cannot be written at once is left unsaid, and
    /// the answer is never read.
    pub(super) async fn quit(mut self) {
        let goodbye = async {
            self.client.stream.write_all(b"QUIT\r\n").await?;
            self.client.stream.flush().await?;
            self.client.stream.shutdown().await
        };
        let _ = timeout(Duration::ZERO, goodbye).await;
    }
}

/// A command that has to be answered by 2xx.
pub(super) async fn command<S: Stream>(client: &mut Client<S>, line: &str) -> Result<(), Reason> {
    let reply = client.cmd(line).await.map_err(|error| reason_of(&error))?;
    if reply.is_positive_completion() { Ok(()) } else { Err(unexpected(reply.code)) }
}

/// mail-send's own time limit is left out: [`within`] has them all.
fn client<S>(stream: Guarded<S>) -> Client<S>
where
    Guarded<S>: AsyncRead + AsyncWrite,
{
    SmtpClient { stream, timeout: Duration::from_secs(3600) }
}

/// A session over any stream, past EHLO.
#[cfg(test)]
pub(super) fn over(stream: impl Stream + 'static) -> Client<Box<dyn Stream>> {
    client(Guarded::after_start_tls(Box::new(stream)))
}
