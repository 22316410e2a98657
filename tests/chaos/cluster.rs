//! A PostgreSQL of the test's own, that can be killed and comes back with what it had acknowledged.

use std::path::{Path, PathBuf};

use postrider::private_postgres::{Binaries, Options, PrivatePostgres};
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, PgConnection};

use crate::processes::{Signal, send};

pub const DATABASE: &str = "chaos";

pub struct Cluster {
    options: Options,
    folder: PathBuf,
    server: Option<PrivatePostgres>,
}

impl Cluster {
    pub async fn start(folder: &Path, settings: &[(&str, &str)]) -> Self {
        let mut options = Options::new(Binaries::find(None).unwrap(), folder).throw_away();
        // What is acknowledged is with the kernel, so that it outlives the server, if not the machine.
        for (name, value) in [("synchronous_commit", "on"), ("max_connections", "100")].iter().chain(settings) {
            options = options.setting(name, value);
        }
        let server = PrivatePostgres::start(options.clone()).await.unwrap();
        Self { options, folder: folder.to_owned(), server: Some(server) }
    }

    pub async fn create_database(&self) {
        self.server().ensure_database(DATABASE).await.unwrap();
    }

    fn server(&self) -> &PrivatePostgres {
        self.server.as_ref().unwrap()
    }

    pub fn options(&self) -> PgConnectOptions {
        self.server().connect_options(DATABASE).disable_statement_logging()
    }

    /// Past every proxy.
    pub async fn connect(&self) -> PgConnection {
        self.options().connect().await.unwrap()
    }

    /// Where the proxies lead; the same after a restart.
    pub fn socket(&self) -> PathBuf {
        self.options().get_socket().unwrap().join(format!(".s.PGSQL.{}", self.options().get_port()))
    }

    /// Where its data are.
    pub fn data(&self) -> PathBuf {
        self.folder.join("pg")
    }

    /// SIGKILL of the postmaster: its backends see it and end, at once or after their statement.
    pub async fn kill(&mut self) {
        let server = self.server.take().unwrap();
        send(server.pid(), Signal::Kill);
        server.ended().await;
        server.stop().await.unwrap();
    }

    /// Ends sessions and writes a checkpoint.
    pub async fn stop(&mut self) {
        self.server.take().unwrap().stop().await.unwrap();
    }

    pub async fn start_again(&mut self) {
        self.server = Some(PrivatePostgres::start(self.options.clone()).await.unwrap());
    }
}
