//! Relays under TLS that the client trusts.

use postrider::mail::Message;
use postrider::mail::smtp::{Smtp, SmtpConfig};
use postrider_actors::Outcome;

use crate::outbound::Ca;
use crate::script::{Script, Server, config};

/// A relay at 127.0.0.1, and the root of its certificate.
pub struct Trusted {
    ca: Ca,
    pub server: Server,
}

impl Trusted {
    pub async fn start(scripts: Vec<Script>) -> Self {
        let ca = Ca::new();
        let server = Server::certified(ca.certify(&["127.0.0.1"]), scripts).await;
        Self { ca, server }
    }

    /// Settings by a relay's URL without port.
    pub fn config(&self, url: &str) -> SmtpConfig {
        SmtpConfig { extra_roots: Some(self.ca.path().to_owned()), ..config(vec![self.server.relay_by(url)]) }
    }

    /// One message by a client of its own.
    pub async fn send(&self, url: &str, message: &Message) -> Outcome {
        Smtp::new(self.config(url)).unwrap().send(message).await
    }
}
