//! Starting, in order: address, database, metrics, actors, HTTP.

use std::net::SocketAddr;

use sqlx::Connection;
use tokio::net::TcpListener;

use super::arguments::ServeArguments;
use super::http::Server;
use super::plan::Plan;
use super::{engine, health::Readiness};
use crate::cli::arguments::Global;
use crate::cli::connection::{NoAnswer, Patience, connect, pooler_failure, schema_failure};
use crate::cli::database::Database;
use crate::cli::failure::{Exit, Failure};
use crate::cli::migrate::migrate;
use crate::cli::tell::tell;
use crate::signing::SigningKeys;
use crate::subsystem::{SetupError, Subsystem};

/// What runs.
pub(super) struct Running {
    pub(super) subsystem: Subsystem,
    pub(super) server: Server,
    pub(super) readiness: Readiness,
    pub(super) database: Database,
    keys: SigningKeys,
    channels: Vec<String>,
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
    let Plan { channels, config, keys } = plan;
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
    let server = Server::start(listener, &keys, metrics, readiness.clone());
    Ok(Running { subsystem, server, readiness, database, keys, channels: names, listen })
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
        tell(format!("  listening on http://{}: /jwks.json, /metrics, /health/ready, /health/actors", self.listen));
        if !self.listen.ip().is_loopback() {
            tracing::warn!(
                address = %self.listen,
                "metrics and health are served beyond this machine, without authentication"
            );
        }
    }
}
