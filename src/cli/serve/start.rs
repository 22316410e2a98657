//! Starting, in order: address, database, metrics, actors, HTTP.

use std::net::SocketAddr;
use std::sync::Arc;

use sqlx::Connection;
use tokio::net::TcpListener;

use super::arguments::ServeArguments;
use super::http::{Pages, Server};
use super::plan::Plan;
use super::{engine, health::Readiness};
use crate::cli::arguments::Global;
use crate::cli::connection::{NoAnswer, Patience, connect, pooler_failure, schema_failure};
use crate::cli::database::Database;
use crate::cli::failure::{Exit, Failure};
use crate::cli::migrate::migrate;
use crate::cli::tell::tell;
use crate::identity::ReferenceDirectory;
use crate::queue::{connect_options, pool_options};
use crate::signing::SigningKeys;
use crate::subsystem::{SetupError, Subsystem};
use crate::unsubscribe::Unsubscribe;

/// For those who unsubscribe: they come one by one, and each takes a moment.
const UNSUBSCRIBE_CONNECTIONS: u32 = 2;

/// What runs.
pub(super) struct Running {
    pub(super) subsystem: Subsystem,
    pub(super) server: Server,
    pub(super) readiness: Readiness,
    pub(super) database: Database,
    keys: SigningKeys,
    channels: Vec<String>,
    mail: String,
    listen: SocketAddr,
}

pub(super) async fn start(global: &Global, arguments: &ServeArguments, plan: Plan) -> Result<Running, Failure> {
    let (listener, listen) = bind(arguments.listen).await?;
    let database = Database::existing_or_new(global).await?;
    if database.is_private() || arguments.migrate {
        migrate(&database, global).await?;
    }
    check(&database, global).await?;
    let metrics = super::http::install_metrics()?;
    let Plan { channels, config, keys, link_keys, mail } = plan;
    let queue_timeout = config.engine.queue_timeout;
    let names = channels.policies().iter().map(|policy| policy.name.to_string()).collect();
    let spawn = Subsystem::spawn(database.options.clone(), channels, config);
    let spawned = tokio::time::timeout(global.database_timeout, spawn).await;
    let subsystem = spawned
        .map_err(|_| {
            Failure::new(Exit::Unreachable, format!("the {} does not answer", database.shown()))
                .because(&NoAnswer(global.database_timeout))
        })?
        .map_err(|error| failure(&database, &error))?;
    let readiness = Readiness::new(subsystem.clone());
    let unsubscribe = link_keys.map(|link_keys| {
        let pool = pool_options(queue_timeout).max_connections(UNSUBSCRIBE_CONNECTIONS);
        let pool = pool.connect_lazy_with(connect_options(database.options.clone()));
        Unsubscribe::new(Arc::new(ReferenceDirectory), link_keys, pool)
    });
    let pages = Pages { jwks: keys.jwks().to_string(), metrics, unsubscribe };
    let server = Server::start(listener, pages, readiness.clone());
    Ok(Running { subsystem, server, readiness, database, keys, channels: names, mail, listen })
}

async fn bind(address: SocketAddr) -> Result<(TcpListener, SocketAddr), Failure> {
    let bound = async {
        let listener = TcpListener::bind(address).await?;
        let listen = listener.local_addr()?;
        Ok((listener, listen))
    };
    bound.await.map_err(|error: std::io::Error| {
        let failure = Failure::new(Exit::Failed, format!("--listen (POSTRIDER_LISTEN) {address} cannot be had"));
        let failure = failure.because(&error);
        if error.kind() == std::io::ErrorKind::AddrInUse {
            return failure.advise("another process has this port: stop it, or choose another port with --listen");
        }
        failure
    })
}

/// Reachable, new enough, and migrated: said here, where the messages name flags.
async fn check(database: &Database, global: &Global) -> Result<(), Failure> {
    let mut connection = connect(database, global, Patience::UntilTimeout).await?;
    let checked = crate::check_schema(&mut connection).await;
    // Nothing is left to be done on it.
    let _ = connection.close().await;
    checked.map_err(|error| schema_failure(database, &error))
}

fn failure(database: &Database, error: &SetupError) -> Failure {
    match error {
        SetupError::Config(_) | SetupError::PoolTooSmall { .. } => engine::refused(error),
        SetupError::Schema(error) => schema_failure(database, error),
        SetupError::Unreachable(source) => {
            Failure::new(Exit::Unreachable, format!("cannot connect to the {}", database.shown())).because(source)
        }
        SetupError::Pooler(error) => pooler_failure(database, error),
        SetupError::NoSecondConnection(_) => Failure::of(Exit::Unreachable, error),
        SetupError::Start(_) => Failure::of(Exit::Failed, error),
    }
}

impl Running {
    /// Tells people what runs where.
    pub(super) fn announce(&self) {
        tell(format!("postrider {}", env!("CARGO_PKG_VERSION")));
        tell(format!("  {}", self.database.shown()));
        if let Some(command) = self.database.psql_command() {
            tell(format!("  a private PostgreSQL; look into it with: {command}"));
        }
        tell(format!("  channels: {}", self.channels.join(", ")));
        for key in self.keys.iter() {
            let signs = self.keys.signer(key.algorithm()).is_some_and(|signer| signer.kid() == key.kid());
            let role = if signs { "signs" } else { "is published" };
            tell(format!("  key {} {role} ({})", key.kid(), key.algorithm()));
        }
        tell(format!("  {}", self.mail));
        tell(format!("  listening on http://{}: /jwks.json, /metrics, /health/ready, /health/actors", self.listen));
        if !self.listen.ip().is_loopback() {
            tracing::warn!(
                address = %self.listen,
                "metrics and health are served beyond this machine, without authentication"
            );
        }
    }
}
