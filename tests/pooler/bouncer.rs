//! A PgBouncer for one test, on a socket in a folder of its own.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use sqlx::postgres::PgConnectOptions;

use crate::support::{TestDatabase, eventually};

const PORT: u16 = 6432;

/// How it shares PostgreSQL's connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Session,
    Transaction,
    Statement,
}

/// Its settings.
#[derive(Debug, Clone)]
pub struct Settings {
    pub mode: Mode,
    pub size: u32,
    /// More lines of its configuration.
    pub more: &'static str,
}

impl Settings {
    pub const fn new(mode: Mode, size: u32) -> Self {
        Self { mode, size, more: "" }
    }
}

/// Ends with the value, or with the test's thread.
pub struct Bouncer {
    child: Child,
    folder: PathBuf,
}

impl Bouncer {
    pub async fn start(database: &TestDatabase, settings: &Settings) -> Self {
        let program = program();
        let server = database.options();
        let (host, port) = (server.get_socket(), server.get_port());
        let host = host.map_or_else(|| server.get_host().to_owned(), |socket| socket.display().to_string());
        let mode = format!("{:?}", settings.mode).to_lowercase();
        let folder = std::env::temp_dir().join(format!("postrider-pooler-{}", uuid::Uuid::new_v4().simple()));
        fs::create_dir(&folder).unwrap();
        let (path, size, more) = (folder.display(), settings.size, settings.more);
        let (user, password) = (server.get_username(), password(database));
        let configuration = format!(
            "[databases]\n* = host={host} port={port} user={user}{password}\n\
             [pgbouncer]\nunix_socket_dir = {path}\nlisten_port = {PORT}\nlogfile = {path}/log\nauth_type = any\n\
             pool_mode = {mode}\ndefault_pool_size = {size}\nmax_client_conn = 100\n{more}\n"
        );
        fs::write(folder.join("pgbouncer.ini"), configuration).unwrap();
        let child = start(program, &folder, Path::new(&host));
        let mut bouncer = Self { child, folder };
        eventually(Duration::from_secs(20), "PgBouncer listens", async || {
            let ended = bouncer.child.try_wait().unwrap();
            assert!(ended.is_none(), "PgBouncer ended ({ended:?}): {}", bouncer.log());
            UnixStream::connect(bouncer.folder.join(format!(".s.PGSQL.{PORT}"))).is_ok()
        })
        .await;
        bouncer
    }

    /// How to connect to `database` through it.
    pub fn options(&self, database: &TestDatabase) -> PgConnectOptions {
        self.url(database).parse().unwrap()
    }

    pub fn url(&self, database: &TestDatabase) -> String {
        let folder = self.folder.display();
        format!("postgresql:///{}?host={folder}&port={PORT}&user=anybody&sslmode=disable", database.name())
    }

    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }
}

impl Drop for Bouncer {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
        _ = fs::remove_dir_all(&self.folder);
    }
}

fn password(database: &TestDatabase) -> String {
    let url = url::Url::parse(&database.url()).unwrap();
    url.password().map(|password| format!(" password={password}")).unwrap_or_default()
}

fn program() -> &'static str {
    ["/usr/sbin/pgbouncer", "/usr/local/sbin/pgbouncer", "/usr/bin/pgbouncer", "/usr/local/bin/pgbouncer"]
        .into_iter()
        .find(|program| Path::new(program).exists())
        .expect("PgBouncer is not installed: run scripts/install-test-peers.sh")
}

/// It refuses to run as root: then as whoever owns the server's socket, as others may not reach that; and where that is
/// root too, as root in a user namespace that shows root as another.
fn start(program: &str, folder: &Path, socket: &Path) -> Child {
    let mut command = Command::new(program);
    if fs::metadata(folder).unwrap().uid() == 0 {
        const NOBODY: (u32, u32) = (65534, 65534);
        let owner = fs::metadata(socket).map_or(NOBODY, |owner| (owner.uid(), owner.gid()));
        if owner.0 == 0 {
            command = Command::new("unshare");
            command.args(["--user", "--map-user=65534", "--map-group=65534", program]);
        } else {
            fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
            chown(folder, Some(owner.0), Some(owner.1)).unwrap();
            command.uid(owner.0).gid(owner.1);
        }
    }
    command.arg("-q").arg(folder.join("pgbouncer.ini")).current_dir("/").stdin(Stdio::null());
    command.stdout(Stdio::null()).stderr(fs::File::create(folder.join("stderr")).unwrap());
    // SAFETY: prctl may be called between fork and exec.
    unsafe {
        command.pre_exec(|| {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            Ok(())
        });
    }
    command.spawn().unwrap()
}
