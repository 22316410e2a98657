//! The servers: TLS on addresses of this machine, one request to a connection.

use std::net::SocketAddr;
use std::sync::Arc;

use chrono::Utc;
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use super::behaviour::{Answer, Behaviour};
use super::http::{self, Request};
use super::ledger::Ledger;
use super::token::{Expected, Jwks, validate};
use crate::signing::{FORM_CONTENT_TYPE, SigningAlgorithm};

/// The one path at which tokens are taken.
pub(in crate::demo) const LOGOUT_PATH: &str = "/logout";

/// A relying party: what it knows of the issuer and what it does.
#[derive(Debug)]
pub(in crate::demo) struct Relying {
    /// Its position in the cast.
    pub(in crate::demo) role: usize,
    pub(in crate::demo) client_id: String,
    pub(in crate::demo) algorithm: SigningAlgorithm,
    pub(in crate::demo) issuer: &'static str,
    pub(in crate::demo) jwks: Arc<Jwks>,
    pub(in crate::demo) behaviour: Behaviour,
}

/// Running receivers; they end when this is dropped, connections and all.
#[derive(Debug, Default)]
pub(in crate::demo) struct Receivers {
    tasks: JoinSet<()>,
    ledger: Ledger,
}

impl Receivers {
    /// What they note down.
    pub(in crate::demo) fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Starts one on `host`, at a port that the system chooses, and returns where it is.
    pub(in crate::demo) async fn start(
        &mut self,
        host: &str,
        tls: Arc<ServerConfig>,
        relying: Relying,
    ) -> std::io::Result<SocketAddr> {
        let listener = TcpListener::bind((host, 0)).await?;
        let address = listener.local_addr()?;
        self.tasks.spawn(listen(listener, TlsAcceptor::from(tls), Arc::new(relying), self.ledger.clone()));
        Ok(address)
    }

    /// Ends them all.
    pub(in crate::demo) async fn end(&mut self) {
        self.tasks.shutdown().await;
    }
}

async fn listen(listener: TcpListener, tls: TlsAcceptor, relying: Arc<Relying>, ledger: Ledger) {
    let mut connections = JoinSet::new(); // aborted with this task
    loop {
        let Ok((tcp, _)) = listener.accept().await else {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await; // out of descriptors
            continue;
        };
        ledger.connected(relying.role);
        connections.spawn(serve(tcp, tls.clone(), Arc::clone(&relying), ledger.clone()));
        while connections.try_join_next().is_some() {}
    }
}

async fn serve(tcp: TcpStream, tls: TlsAcceptor, relying: Arc<Relying>, ledger: Ledger) {
    let Ok(mut stream) = tls.accept(tcp).await else { return };
    let Some(request) = http::read(&mut stream).await else { return };
    let answer = relying.take(&request, &ledger).unwrap_or_else(|complaint| {
        ledger.complain(relying.role, complaint);
        Answer::Status(400)
    });
    let _ = http::answer(&mut stream, answer).await; // the sender may be gone
}

impl Relying {
    /// Notes a good token and says what to answer, or what is wrong with the request.
    fn take(&self, request: &Request, ledger: &Ledger) -> Result<Answer, &'static str> {
        if request.method != "POST" || request.path != LOGOUT_PATH {
            return Err("a request that is not a POST to its logout URI");
        }
        if request.content_type.as_deref() != Some(FORM_CONTENT_TYPE) {
            return Err("content-type");
        }
        let mut fields = url::form_urlencoded::parse(&request.body);
        let token = match (fields.next(), fields.next()) {
            (Some((name, token)), None) if name == "logout_token" => token,
            _ => return Err("not the one form field logout_token"),
        };
        let Self { issuer, client_id, algorithm, .. } = self;
        let expected = Expected { issuer, client_id, algorithm: *algorithm, now: Utc::now() };
        let accepted = validate(&token, &self.jwks, &expected)?;
        Ok(ledger.receive(self.role, accepted.jti, accepted.sid, |seen| self.behaviour.answer(seen)))
    }
}
