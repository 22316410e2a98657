//! A PostgreSQL of one's own: found, set up, run and ended by the process that needs it, so that trying Postrider out
//! takes neither a server nor an administrator.
//!
//! What is promised:
//! - The server listens on a Unix socket in a folder that only its own user (and root) may enter, and on no network.
//! - It ends when its owner ends, even by SIGKILL; should it ever outlive its owner, the next start ends it.
//! - Data stays in the data folder across runs and crashes; an initdb that was interrupted is done again.
//! - A data folder has one owner at a time, and a folder that Postrider did not make is never touched.
//!
//! What is not: it is no production set-up. One machine holds the data, there is no backup, and the machine's other
//! administrators can read it.
//!
//! A data folder holds `postrider.lock` (locked by its owner, whose pid it tells), `pg` (PostgreSQL's own data
//! folder), `run` (the socket) and `postgres.log`.

mod account;
mod attach;
mod binaries;
mod error;
mod folder;
mod leftover;
mod options;
mod server;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection};

use account::Account;
use folder::Folder;
use server::Server;

pub use attach::{Attached, Found, look};
pub use binaries::{Binaries, OLDEST_MAJOR};
pub use error::Error;
pub use options::{Options, default_data_folder};

/// The superuser of every private PostgreSQL.
const USER: &str = "postgres";

/// A running PostgreSQL that ends with this value.
///
/// Dropping it stops the server and blocks until it has ended: normally well under a second, 20 s at the very most.
#[derive(Debug)]
pub struct PrivatePostgres {
    running: Arc<Running>,
}

#[derive(Debug)]
struct Running {
    server: Server,
    run_folder: PathBuf,
    log: PathBuf,
    log_start: u64,
    /// Given up when the server has been stopped.
    folder: Mutex<Option<Folder>>,
}

impl PrivatePostgres {
    /// Starts the server: makes a cluster if the folder has none, ends a server that outlived its owner, and returns
    /// once connections are accepted. If the future is dropped before, the server is stopped.
    ///
    /// # Errors
    /// [`Error::InUse`] while another process owns the folder, [`Error::Foreign`] if Postrider did not make it,
    /// [`Error::NoAccount`] if root's server could not enter it, and the others that their docs describe.
    pub async fn start(options: Options) -> Result<Self, Error> {
        let data = options.data.clone();
        off_runtime(&data, move || Self::start_blocking(options)).await
    }

    /// As [`PrivatePostgres::start`], for callers without a runtime.
    ///
    /// # Errors
    /// Those of [`PrivatePostgres::start`].
    pub fn start_blocking(options: Options) -> Result<Self, Error> {
        let folder = Folder::open(&options.data)?;
        let cluster = folder.cluster();
        let complete = folder::holds_cluster(&cluster)?;
        if complete {
            check_release(&cluster, &options.binaries)?;
        }
        let account = Account::choose(&options.binaries, folder.root())?;
        if complete {
            leftover::stop(&cluster)?;
            account.give_tree(&cluster)?;
        } else {
            make_cluster(&options, &folder, account)?;
        }
        let run_folder = folder.new_run_folder(account)?;
        let deadline = Instant::now() + options.start_timeout;
        loop {
            let log_start = log_length(&folder)?;
            let server = spawn(&options, &folder, account, &run_folder)?;
            let log = folder.log_path();
            let Err(reason) = wait_until_ready(&server, &cluster, deadline) else {
                let folder = Mutex::new(Some(folder));
                let running = Arc::new(Running { server, run_folder, log, log_start, folder });
                return Ok(Self { running });
            };
            server.stop();
            let tail = folder::log_tail(&log, log_start);
            // Backends of a server that was killed end on their own, those amid a long statement only after it.
            if tail.contains("pre-existing shared memory block") && Instant::now() < deadline {
                thread::sleep(Duration::from_millis(100));
                continue;
            }
            return Err(Error::StartFailed { reason, log, tail });
        }
    }

    /// Creates the database if it does not exist yet.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub async fn ensure_database(&self, name: &str) -> Result<(), Error> {
        let ensure = async {
            let mut connection = self.connect_options(USER).connect().await?;
            let exists = sqlx::query("select from pg_database where datname = $1").bind(name);
            if exists.fetch_optional(&mut connection).await?.is_none() {
                let create = format!("create database \"{}\"", name.replace('"', "\"\""));
                sqlx::query(AssertSqlSafe(create)).execute(&mut connection).await?;
            }
            connection.close().await
        };
        ensure.await.map_err(|source| Error::Database { database: name.to_owned(), source })
    }

    /// How to connect to one of its databases, as its superuser.
    #[must_use]
    pub fn connect_options(&self, database: &str) -> PgConnectOptions {
        attach::connect_options(&self.running.run_folder, database)
    }

    /// The same as a URL that sqlx, psql and everything else on libpq understand:
    /// `postgresql:///postrider?host=/var/lib/postrider/run&user=postgres`.
    #[must_use]
    pub fn url(&self, database: &str) -> String {
        let encode = |text: &str| -> String {
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte);
            text.bytes().map(|b| if plain(b) { char::from(b).into() } else { format!("%{b:02X}") }).collect()
        };
        let (database, host) = (encode(database), encode(&self.running.run_folder.to_string_lossy()));
        format!("postgresql:///{database}?host={host}&port={}&user={USER}&sslmode=disable", folder::PORT)
    }

    /// A command line for a shell that opens psql on one of its databases. Only root and the server's own user are let
    /// through to the socket.
    #[must_use]
    pub fn psql_command(&self, database: &str) -> String {
        let quote = |text: &str| format!("'{}'", text.replace('\'', r"'\''"));
        let host = quote(&self.running.run_folder.to_string_lossy());
        format!("psql -h {host} -U {USER} -d {}", quote(database))
    }

    /// The server's process id, for people: the process may have ended.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.running.server.pid()
    }

    /// The server's log. It is kept across runs, and one of more than 16 MiB is put aside at a start.
    #[must_use]
    pub fn log(&self) -> &Path {
        &self.running.log
    }

    /// Waits until the server has ended, and says how: [`Error::Ended`]. For a `select!` beside an owner's own work,
    /// which is over then. Completes after [`PrivatePostgres::stop`] too.
    pub async fn ended(&self) -> Error {
        let status = self.running.server.ended().await.to_string();
        let log = self.running.log.clone();
        let tail = folder::log_tail(&log, self.running.log_start);
        Error::Ended { status, log, tail }
    }

    /// Stops the server, ending its sessions, and gives the folder up. Takes up to 10 s; a server that has not ended
    /// by then is stopped without a checkpoint, which costs a recovery at the next start and no data. Idempotent.
    ///
    /// # Errors
    /// [`Error::DoesNotStop`]: the folder stays locked.
    pub async fn stop(&self) -> Result<(), Error> {
        let running = Arc::clone(&self.running);
        off_runtime(&self.running.log, move || running.stop()).await
    }
}

impl Drop for PrivatePostgres {
    fn drop(&mut self) {
        if let Err(error) = self.running.stop() {
            tracing::error!(%error, "a private PostgreSQL was left running");
        }
    }
}

impl Running {
    fn stop(&self) -> Result<(), Error> {
        let mut folder = self.folder.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.server.stop() {
            return Err(Error::DoesNotStop { pid: self.server.pid() });
        }
        match folder.take() {
            Some(folder) => folder.remove_run_folder(),
            None => Ok(()),
        }
    }
}

/// Runs `act`, which blocks, on a thread where that is allowed.
async fn off_runtime<T: Send + 'static>(
    path: &Path,
    act: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    match tokio::task::spawn_blocking(act).await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime is shutting down.
            Err(error) => Err(Error::io("work on", path)(error.into())),
        },
    }
}

fn check_release(cluster: &Path, binaries: &Binaries) -> Result<(), Error> {
    let path = cluster.join("PG_VERSION");
    let made_by = std::fs::read_to_string(&path).map_err(Error::io("read", &path))?.trim().to_owned();
    if made_by == binaries.major().to_string() {
        return Ok(());
    }
    Err(Error::OtherRelease { cluster: cluster.to_owned(), made_by, binaries: binaries.major() })
}

fn make_cluster(options: &Options, folder: &Folder, account: Account) -> Result<(), Error> {
    let unfinished = folder.new_cluster(account)?;
    let log_start = log_length(folder)?;
    let program = options.binaries.program("initdb");
    let mut command = Command::new(&program);
    command.args(["--encoding=UTF8", "--locale=C", "--auth=trust", "--no-instructions"]);
    command.arg(format!("--username={USER}")).arg("--pgdata").arg(&unfinished);
    if options.throw_away {
        command.arg("--no-sync");
    }
    confine(&mut command, folder, account, libc::SIGTERM)?;
    let status = command.status().map_err(Error::io("run", &program))?;
    if !status.success() {
        let log = folder.log_path();
        let tail = folder::log_tail(&log, log_start);
        return Err(Error::InitFailed { status: status.to_string(), log, tail });
    }
    folder.accept_cluster(&unfinished)
}

fn spawn(options: &Options, folder: &Folder, account: Account, run_folder: &Path) -> Result<Server, Error> {
    let program = options.binaries.program("postgres");
    let mut command = Command::new(&program);
    command.arg("-D").arg(folder.cluster());
    for (name, value) in &options.settings {
        command.arg("-c").arg(format!("{name}={value}"));
    }
    // Last, as the last one holds.
    command.args(["-c", "listen_addresses=", "-c", &format!("port={}", folder::PORT), "-k"]).arg(run_folder);
    confine(&mut command, folder, account, libc::SIGINT)?;
    Server::spawn(command).map_err(Error::io("run", &program))
}

/// As `account`, in the data folder, without input, and with all output in the log.
fn confine(command: &mut Command, folder: &Folder, account: Account, death_signal: i32) -> Result<(), Error> {
    let log = folder.open_log()?;
    let again = log.try_clone().map_err(Error::io("open", &folder.log_path()))?;
    command.stdin(Stdio::null()).stdout(log).stderr(again).current_dir(folder.root());
    account.apply(command, death_signal);
    Ok(())
}

fn log_length(folder: &Folder) -> Result<u64, Error> {
    let log = folder.open_log()?;
    Ok(log.metadata().map_err(Error::io("look at", &folder.log_path()))?.len())
}

/// Waits for what pg_ctl waits for: the last line of the server's pid file says that it accepts connections, be it as a
/// standby's.
fn wait_until_ready(server: &Server, cluster: &Path, deadline: Instant) -> Result<(), String> {
    let path = cluster.join("postmaster.pid");
    loop {
        if let Some(status) = server.exit_status() {
            return Err(format!("it ended ({status})"));
        }
        let content = std::fs::read_to_string(&path).unwrap_or_default();
        let mut lines = content.lines();
        if lines.next().and_then(|pid| pid.trim().parse().ok()) == Some(server.pid())
            && lines.nth(6).is_some_and(|state| matches!(state.trim(), "ready" | "standby"))
        {
            return Ok(());
        }
        if Instant::now() > deadline {
            return Err("it was not ready in time".to_owned());
        }
        thread::sleep(Duration::from_millis(10));
    }
}
