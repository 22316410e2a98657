//! What a relay's bytes come to, without the network between: the way in of fuzz/. Compiled for it alone.

use std::time::Duration;

use hickory_resolver::net::NetError;
use mail_send::Credentials;
use postrider_actors::Outcome;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Instant;

use super::config::StageTimeouts;
use super::connection::{Connection, Opener, Stream};
use super::judge::{Stage, judge};
use super::resolver::Resolver;
use crate::mail::Message;

/// A client without a network.
pub struct Session(Opener);

impl Session {
    /// Sets up nothing that is outside this process.
    ///
    /// # Errors
    /// None, as there is no name to look up.
    pub fn new() -> Result<Self, NetError> {
        Ok(Self(Opener {
            resolver: Resolver::new(None, &[])?,
            connector: None,
            helo: "client.example.org".into(),
            stages: StageTimeouts::default(),
        }))
    }

    /// A whole session over `stream`: greeting, EHLO, a login, one message.
    pub async fn run<S>(&self, stream: S, message: &Message) -> Outcome
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let deadline = Instant::now() + Duration::from_secs(10);
        let stream: Box<dyn Stream> = Box::new(stream);
        let (client, offers) = match self.0.greeted(stream, deadline).await {
            Ok(greeted) => greeted,
            Err(reason) => return judge(Stage::Session, reason),
        };
        let mut connection = Connection { client, offers };
        let login = Credentials::Plain { username: "mailer".into(), secret: "secret".into() };
        if let Err(reason) = self.0.log_in(&mut connection, &login, deadline).await {
            return judge(Stage::Session, reason);
        }
        match connection.transact(message, deadline, deadline, &self.0.stages).await {
            Ok(()) => Outcome::Succeeded,
            Err(refused) => judge(refused.stage, refused.reason),
        }
    }
}
