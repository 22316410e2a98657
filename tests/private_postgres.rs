//! The private PostgreSQL keeps its data, its folder to itself, and no server beyond its owner.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use postrider::private_postgres::{Binaries, Error, Options, PrivatePostgres};
use sqlx::{ConnectOptions, Connection, PgConnection};

/// A folder that goes with the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        let path = env::temp_dir().join(format!("postrider-scratch-{}", uuid::Uuid::new_v4().simple()));
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    fn data(&self) -> PathBuf {
        self.0.join("data")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        _ = fs::remove_dir_all(&self.0);
    }
}

fn options(data: &Path) -> Options {
    Options::new(Binaries::find(None).unwrap(), data).throw_away()
}

async fn start(data: &Path) -> Result<PrivatePostgres, Error> {
    PrivatePostgres::start(options(data)).await
}

async fn connect(server: &PrivatePostgres) -> PgConnection {
    server.connect_options("postgres").connect().await.unwrap()
}

/// True while a process that is no zombie has this id.
fn runs(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.trim_start().starts_with('Z'))
}

async fn gone(pid: u32) {
    support::eventually(Duration::from_secs(20), "the server ended", async || !runs(pid)).await;
}

/// A process that owns a server on `data` until it is killed.
struct Owner {
    process: Child,
    server: u32,
}

impl Owner {
    fn start(data: &Path) -> Self {
        let mut command = Command::new(env::current_exe().unwrap());
        let test = "a_folder_in_use_is_refused_with_its_owners_pid";
        command.args(["--exact", test, "--nocapture"]).env("POSTRIDER_TEST_DATA", data);
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines().map(Result::unwrap);
        let server = lines.find_map(|line| line.rsplit_once("server ")?.1.parse().ok()).expect("the owner's server");
        Self { process, server }
    }

    fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        _ = self.process.kill();
        _ = self.process.wait();
    }
}

/// What an [`Owner`]'s process does.
fn own_a_server(data: OsString) {
    // The server is started from a worker of a runtime that then ends: it must outlive that thread.
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let server = runtime.block_on(async { tokio::spawn(async move { start(data.as_ref()).await }).await }).unwrap();
    drop(runtime);
    println!("\nserver {}", server.as_ref().unwrap().pid());
    // Until the killer comes, or has itself gone.
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
}

#[tokio::test]
async fn data_is_kept_across_runs() {
    let scratch = Scratch::new();
    let server = start(&scratch.data()).await.unwrap();
    server.ensure_database("a \"b\"/c").await.unwrap();
    server.ensure_database("a \"b\"/c").await.unwrap();
    let mut connection = PgConnection::connect(&server.url("a \"b\"/c")).await.unwrap();
    sqlx::query("create table kept (id int)").execute(&mut connection).await.unwrap();
    let pid = server.pid();
    server.stop().await.unwrap();
    server.stop().await.unwrap();
    assert!(!runs(pid), "stopped and yet running");
    assert!(matches!(server.ended().await, Error::Ended { .. }));

    let again = start(&scratch.data()).await.unwrap();
    let mut connection = again.connect_options("a \"b\"/c").connect().await.unwrap();
    sqlx::query("select id from kept").fetch_all(&mut connection).await.unwrap();
    let pid = again.pid();
    drop(again);
    assert!(!runs(pid), "dropped and yet running");
}

#[tokio::test]
async fn nothing_listens_on_a_network_and_settings_apply() {
    let scratch = Scratch::new();
    let options = options(&scratch.data()).setting("max_connections", 17).setting("listen_addresses", "*");
    let server = PrivatePostgres::start(options).await.unwrap();
    let setting = "select current_setting('listen_addresses') || '/' || current_setting('max_connections')";
    let applied: String = sqlx::query_scalar(setting).fetch_one(&mut connect(&server).await).await.unwrap();
    assert_eq!(applied, "/17");
}

#[tokio::test]
async fn psql_understands_the_url_and_the_command_whatever_the_path() {
    let scratch = Scratch::new();
    for name in [r#"it's "odd" ü 50%"#, "one,two"] {
        let server = start(&scratch.0.join(name)).await.unwrap();
        psql_understands(&server);
    }
}

fn psql_understands(server: &PrivatePostgres) {
    let folder = Binaries::find(None).unwrap().folder().to_owned();
    if !folder.join("psql").exists() {
        return;
    }
    let path = env::join_paths([folder, "/bin".into(), "/usr/bin".into()]).unwrap();
    for command in [server.psql_command("postgres"), format!("psql '{}'", server.url("postgres"))] {
        let line = format!("{command} -Atc 'select 42'");
        let output = Command::new("sh").arg("-c").arg(&line).env("PATH", &path).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "42\n", "{line}: {output:?}");
    }
}

#[tokio::test]
async fn a_folder_of_someone_else_is_refused_and_not_touched() {
    let scratch = Scratch::new();
    fs::create_dir(scratch.data()).unwrap();
    fs::write(scratch.data().join("thesis.txt"), "years of work").unwrap();
    let error = start(&scratch.data()).await.unwrap_err();
    assert!(matches!(error, Error::Foreign { .. }), "{error}");
    assert_eq!(fs::read_dir(scratch.data()).unwrap().count(), 1);

    fs::remove_file(scratch.data().join("thesis.txt")).unwrap();
    fs::write(scratch.data().join("postrider.lock"), "a file of the same name").unwrap();
    let error = start(&scratch.data()).await.unwrap_err();
    assert!(matches!(error, Error::Foreign { .. }), "{error}");
    let content = fs::read_to_string(scratch.data().join("postrider.lock")).unwrap();
    assert_eq!(content, "a file of the same name");
}

#[tokio::test]
async fn a_half_made_cluster_is_made_again() {
    let scratch = Scratch::new();
    let half_made = scratch.data().join("pg.new-4194304");
    fs::create_dir_all(half_made.join("base")).unwrap();
    fs::write(half_made.join("PG_VERSION"), "1").unwrap();
    // The lock file is made first, and its maker may die before it writes to it.
    fs::write(scratch.data().join("postrider.lock"), "").unwrap();
    let server = start(&scratch.data()).await.unwrap();
    sqlx::query("select").execute(&mut connect(&server).await).await.unwrap();
    assert!(!half_made.exists());
}

#[tokio::test]
async fn a_cluster_of_another_release_is_not_started() {
    let scratch = Scratch::new();
    drop(start(&scratch.data()).await.unwrap());
    fs::write(scratch.data().join("pg/PG_VERSION"), "9\n").unwrap();
    let error = start(&scratch.data()).await.unwrap_err();
    assert!(matches!(&error, Error::OtherRelease { made_by, .. } if made_by == "9"), "{error}");
}

/// Also what an [`Owner`]'s process runs.
#[test]
fn a_folder_in_use_is_refused_with_its_owners_pid() {
    if let Some(data) = env::var_os("POSTRIDER_TEST_DATA") {
        return own_a_server(data);
    }
    let scratch = Scratch::new();
    let owner = Owner::start(&scratch.data());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let error = runtime.block_on(start(&scratch.data())).unwrap_err();
    assert!(matches!(error, Error::InUse { pid: Some(pid), .. } if pid == owner.process.id()), "{error}");
    assert!(error.to_string().contains(&format!("in use by pid {}", owner.process.id())), "{error}");
    assert!(runs(owner.server));
}

#[tokio::test]
async fn an_owner_killed_with_sigkill_takes_its_server_along_and_the_next_start_recovers() {
    let scratch = Scratch::new();
    let mut owner = Owner::start(&scratch.data());
    assert!(runs(owner.server));
    owner.kill();
    // At once, while the old server may still be shutting down.
    let server = start(&scratch.data()).await.unwrap();
    assert!(!runs(owner.server), "two servers");
    sqlx::query("select").execute(&mut connect(&server).await).await.unwrap();
    drop(server);

    let mut owner = Owner::start(&scratch.data());
    owner.kill();
    gone(owner.server).await;
}

#[tokio::test]
async fn a_server_that_outlived_its_owner_is_ended_by_the_next_start() {
    let scratch = Scratch::new();
    drop(start(&scratch.data()).await.unwrap());
    let cluster = scratch.data().join("pg");
    let owner = fs::metadata(&cluster).unwrap();
    if owner.uid() == 0 {
        return; // Runs in a user namespace, which this test cannot enter.
    }
    let mut command = Command::new(Binaries::find(None).unwrap().folder().join("postgres"));
    command.arg("-D").arg(&cluster).args(["-c", "listen_addresses=", "-k"]).arg(&cluster).stderr(Stdio::null());
    let mut survivor = command.uid(owner.uid()).gid(owner.gid()).spawn().unwrap();
    support::eventually(Duration::from_secs(20), "the survivor is ready", async || {
        fs::read_to_string(cluster.join("postmaster.pid")).is_ok_and(|content| content.contains("ready"))
    })
    .await;

    let server = start(&scratch.data()).await.unwrap();
    assert!(!runs(survivor.id()), "two servers");
    survivor.wait().unwrap();
    sqlx::query("select").execute(&mut connect(&server).await).await.unwrap();
}

#[tokio::test]
async fn a_server_killed_with_sigkill_is_noticed_and_the_next_start_recovers() {
    let scratch = Scratch::new();
    let durable = Options::new(Binaries::find(None).unwrap(), scratch.data());
    let server = PrivatePostgres::start(durable.clone()).await.unwrap();
    let mut busy = connect(&server).await;
    sqlx::query("create table kept as select 1 as id").execute(&mut busy).await.unwrap();
    signal(server.pid(), "KILL");
    let error = server.ended().await;
    assert!(error.to_string().contains("signal: 9"), "{error}");
    drop(server);
    // Its process id may be anyone's by now: this test's own, say.
    let pid_file = scratch.data().join("pg/postmaster.pid");
    let content = fs::read_to_string(&pid_file).unwrap();
    let (_, rest) = content.split_once('\n').unwrap();
    fs::write(&pid_file, format!("{}\n{rest}", std::process::id())).unwrap();

    let again = PrivatePostgres::start(durable).await.unwrap();
    sqlx::query("select id from kept").fetch_one(&mut connect(&again).await).await.unwrap();
}

#[tokio::test]
async fn a_server_that_does_not_start_says_why() {
    let scratch = Scratch::new();
    let options = options(&scratch.data()).setting("max_connections", "many");
    let error = PrivatePostgres::start(options).await.unwrap_err();
    assert!(matches!(error, Error::StartFailed { .. }), "{error}");
    assert!(error.to_string().contains("invalid value for parameter \"max_connections\""), "{error}");
}

#[tokio::test]
async fn a_long_path_gets_a_short_socket_folder_that_goes_with_the_server() {
    let scratch = Scratch::new();
    let data = scratch.data().join("long".repeat(25));
    let server = start(&data).await.unwrap();
    let short = fs::read_link(data.join("run")).unwrap();
    PgConnection::connect(&server.url("postgres")).await.unwrap();
    server.stop().await.unwrap();
    assert!(!short.exists());

    // Left behind by a crash.
    let left = env::temp_dir().join(format!("postrider-{}", uuid::Uuid::new_v4().simple()));
    fs::create_dir(&left).unwrap();
    symlink(&left, data.join("run")).unwrap();
    drop(start(&data).await.unwrap());
    assert!(!left.exists());
}

#[tokio::test]
async fn a_folder_that_its_parents_close_to_others_is_used_all_the_same() {
    let scratch = Scratch::new();
    // Closed, open, closed: as root the server runs as another user while that can enter, and the cluster changes hands.
    for mode in [0o700, 0o755, 0o700] {
        fs::set_permissions(&scratch.0, fs::Permissions::from_mode(mode)).unwrap();
        let server = match start(&scratch.data()).await {
            // A machine without user namespaces.
            Err(error @ Error::NoAccount { .. }) => return assert!(error.to_string().contains("--data"), "{error}"),
            result => result.unwrap(),
        };
        server.ensure_database("kept").await.unwrap();
        sqlx::query("select").execute(&mut connect(&server).await).await.unwrap();
    }
}

#[test]
fn missing_and_too_old_binaries_are_told_apart_and_say_what_to_do() {
    let scratch = Scratch::new();
    let missing = Binaries::find(Some(&scratch.0)).unwrap_err();
    assert!(matches!(missing, Error::BinariesMissing { .. }), "{missing}");
    let old = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/postgres-13");
    let old = Binaries::find(Some(&old)).unwrap_err();
    assert!(matches!(&old, Error::BinariesTooOld { version, .. } if version == "13.4"), "{old}");
    for error in [missing.to_string(), old.to_string()] {
        assert!(error.contains("apt-get install postgresql") && error.contains("scripts/get-postgres.sh"), "{error}");
    }
}

fn signal(pid: u32, name: &str) {
    let status = Command::new("kill").args(["-s", name, &pid.to_string()]).status().unwrap();
    assert!(status.success());
}
