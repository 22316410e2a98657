//! Which database a command works on.

use std::path::PathBuf;

use sqlx::postgres::PgConnectOptions;
use url::Url;

use super::arguments::Global;
use super::failure::{Exit, Failure};
use crate::private_postgres::{self, Binaries, Error, Found, Options, PrivatePostgres, default_data_folder};

/// The database in a private PostgreSQL.
const PRIVATE_DATABASE: &str = "postrider";

/// What sqlx understands in the query of a database URL.
const PARAMETERS: [&str; 18] = [
    "sslmode",
    "ssl-mode",
    "sslrootcert",
    "ssl-root-cert",
    "ssl-ca",
    "sslcert",
    "ssl-cert",
    "sslkey",
    "ssl-key",
    "statement-cache-capacity",
    "host",
    "hostaddr",
    "port",
    "dbname",
    "user",
    "password",
    "application_name",
    "options",
];

/// A database, and the server of it where this process runs one.
pub(super) struct Database {
    pub(super) options: PgConnectOptions,
    /// A private PostgreSQL that ends with this value.
    pub(super) server: Option<PrivatePostgres>,
    /// A private PostgreSQL, whoever runs it.
    private: bool,
}

impl Database {
    /// The database that is named, or the private PostgreSQL that is there, started if it does not run. None is made.
    pub(super) async fn existing(global: &Global) -> Result<Self, Failure> {
        if let Some(url) = named(global) {
            return Self::at(url);
        }
        let data = data_folder(global)?;
        match private_postgres::look(&data).map_err(|error| failure(&error))? {
            Found::Running(attached) => {
                Ok(Self { options: attached.connect_options(PRIVATE_DATABASE), server: None, private: true })
            }
            Found::Stopped => Self::start(global, data).await,
            Found::Nothing => Err(Failure::new(
                Exit::Usage,
                format!("no database: DATABASE_URL is not set, and {} holds no private PostgreSQL", data.display()),
            )
            .advise("name the database with --database-url or DATABASE_URL")
            .advise("or name the folder of the private PostgreSQL that `postrider serve` made with --data")),
        }
    }

    /// The database that is named, or the private PostgreSQL, made if there is none.
    pub(super) async fn existing_or_new(global: &Global) -> Result<Self, Failure> {
        match named(global) {
            Some(url) => Self::at(url),
            None => Self::start(global, data_folder(global)?).await,
        }
    }

    fn at(url: &str) -> Result<Self, Failure> {
        Ok(Self { options: parse(url)?, server: None, private: false })
    }

    async fn start(global: &Global, data: PathBuf) -> Result<Self, Failure> {
        let binaries = Binaries::find(global.pg_bin.as_deref()).map_err(|error| failure(&error))?;
        let server = PrivatePostgres::start(Options::new(binaries, data)).await.map_err(|error| failure(&error))?;
        server.ensure_database(PRIVATE_DATABASE).await.map_err(|error| failure(&error))?;
        Ok(Self { options: server.connect_options(PRIVATE_DATABASE), server: Some(server), private: true })
    }

    /// True for a private PostgreSQL, which nobody else migrates.
    pub(super) fn is_private(&self) -> bool {
        self.private
    }

    /// A command line that opens psql on it, where this process runs it.
    pub(super) fn psql_command(&self) -> Option<String> {
        self.server.as_ref().map(|server| server.psql_command(PRIVATE_DATABASE))
    }

    /// Where it is, for people; never the password.
    pub(super) fn shown(&self) -> String {
        let (user, port) = (self.options.get_username(), self.options.get_port());
        let host = match self.options.get_socket() {
            Some(socket) => socket.display().to_string(),
            None => self.options.get_host().to_owned(),
        };
        let database = self.options.get_database().unwrap_or(user);
        format!("database {database} on {host}:{port} as {user}")
    }

    /// Stops the server that this process runs.
    pub(super) async fn close(self) -> Result<(), Failure> {
        match &self.server {
            Some(server) => server.stop().await.map_err(|error| failure(&error)),
            None => Ok(()),
        }
    }
}

fn named(global: &Global) -> Option<&str> {
    global.database_url.as_deref().filter(|url| !url.is_empty())
}

fn data_folder(global: &Global) -> Result<PathBuf, Failure> {
    match &global.data {
        Some(data) => Ok(data.clone()),
        None => default_data_folder().map_err(|error| failure(&error)),
    }
}

/// Reads the URL. No message repeats any of it but a parameter's name, as it may hold a password.
fn parse(text: &str) -> Result<PgConnectOptions, Failure> {
    let refused = |why: &str| {
        Failure::new(Exit::Usage, format!("--database-url (DATABASE_URL) {why}"))
            .advise("write it as postgresql://user:password@host:5432/database, special characters percent-encoded")
    };
    let mut url = Url::parse(text).map_err(|error| refused("is not a URL").because(&error))?;
    if !matches!(url.scheme(), "postgresql" | "postgres") {
        return Err(refused("is not a postgresql:// URL"));
    }
    let pairs: Vec<(String, String)> = url.query_pairs().into_owned().collect();
    let (known, unknown): (Vec<_>, Vec<_>) =
        pairs.into_iter().partition(|(key, _)| PARAMETERS.contains(&key.as_str()) || key.starts_with("options["));
    for (key, _) in &unknown {
        tracing::warn!(parameter = %key, "the database URL has a parameter that is not understood and does nothing");
    }
    if !unknown.is_empty() {
        url.query_pairs_mut().clear().extend_pairs(known);
    }
    url.as_str().parse().map_err(|error: sqlx::Error| refused("cannot be used").because(&error))
}

/// Whether it is the setting that is wrong, or the server.
pub(super) fn failure(error: &Error) -> Failure {
    let exit = match error {
        Error::BinariesMissing { .. }
        | Error::BinariesTooOld { .. }
        | Error::BinariesUnusable { .. }
        | Error::NoHome
        | Error::Foreign { .. }
        | Error::NotACluster { .. }
        | Error::OtherRelease { .. }
        | Error::NoAccount { .. } => Exit::Usage,
        Error::InitFailed { .. } | Error::StartFailed { .. } | Error::Database { .. } => Exit::Unreachable,
        _ => Exit::Failed,
    };
    let failure = Failure::new(exit, "the private PostgreSQL cannot be used").because(error);
    match error {
        Error::InUse { .. } => failure.advise("name a database with DATABASE_URL, or another folder with --data"),
        _ => failure,
    }
}
