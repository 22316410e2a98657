//! The cluster that the tests of this process share, and the migrated template in it.

use std::env;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock};

use postrider::private_postgres::{Binaries, Options, PrivatePostgres};
use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, PgConnection};
use tokio::sync::OnceCell;
use uuid::Uuid;

/// Brings the database up to date.
pub async fn migrate(connection: &mut PgConnection) {
    postrider::migrate(connection).await.unwrap();
}

fn migrations() -> [PathBuf; 2] {
    ["queue", "identity"].map(|folder| Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations").join(folder))
}

/// The URL of one of the cluster's databases, as a superuser.
pub fn url(database: &str) -> String {
    static URL: OnceLock<String> = OnceLock::new();
    let any = URL.get_or_init(|| match env::var("POSTRIDER_TEST_DATABASE_URL") {
        Ok(url) if !url.is_empty() => url,
        _ => start(),
    });
    let mut url = url::Url::parse(any).unwrap();
    url.set_path(database);
    url.into()
}

/// How to connect to the cluster's `postgres` database, as a superuser.
pub fn administration() -> PgConnectOptions {
    url("postgres").parse::<PgConnectOptions>().unwrap().disable_statement_logging()
}

/// The name of a migrated database that no one may connect to, made at most once per cluster and set of migrations,
/// whichever of the test processes comes first.
pub async fn template() -> &'static str {
    static TEMPLATE: OnceCell<String> = OnceCell::const_new();
    TEMPLATE.get_or_init(make_template).await
}

async fn make_template() -> String {
    const LOCK: i64 = 0x706f_7374_7269_6465;
    let name = format!("postrider_template_{:016x}", migrations_hash());
    let mut connection = administration().connect().await.unwrap();
    sqlx::query("select pg_advisory_lock($1)").bind(LOCK).execute(&mut connection).await.unwrap();
    let found = sqlx::query("select from pg_database where datname = $1").bind(&name);
    if found.fetch_optional(&mut connection).await.unwrap().is_none() {
        // Under another name until it is complete, so that a test process that dies here leaves no half template.
        let unfinished = format!("unfinished_{}", Uuid::new_v4().simple());
        execute(&mut connection, format!("create database {unfinished} template template0")).await;
        let mut inside = administration().database(&unfinished).connect().await.unwrap();
        migrate(&mut inside).await;
        inside.close().await.unwrap();
        execute(&mut connection, format!("alter database {unfinished} with allow_connections false")).await;
        execute(&mut connection, format!("alter database {unfinished} rename to {name}")).await;
    }
    connection.close().await.unwrap();
    name
}

pub async fn execute(connection: &mut PgConnection, statement: String) {
    sqlx::query(AssertSqlSafe(statement)).execute(connection).await.unwrap();
}

/// Of the migrations' names and content.
fn migrations_hash() -> u64 {
    let mut files: Vec<_> = migrations()
        .iter()
        .flat_map(|folder| fs::read_dir(folder).unwrap())
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    let mut hasher = DefaultHasher::new();
    for file in files {
        file.file_name().hash(&mut hasher);
        fs::read(&file).unwrap_or_default().hash(&mut hasher);
    }
    hasher.finish()
}

/// The private cluster, for `end` to find.
static CLUSTER: Mutex<Option<(PrivatePostgres, PathBuf)>> = Mutex::new(None);

/// Starts a cluster that lasts as long as this process.
fn start() -> String {
    let folder = env::temp_dir().join(format!("postrider-test-{}", Uuid::new_v4().simple()));
    let binaries = Binaries::find(None).unwrap_or_else(|error| panic!("{error}"));
    let options = Options::new(binaries, &folder).throw_away().setting("max_connections", 300);
    let cluster = PrivatePostgres::start_blocking(options).unwrap_or_else(|error| panic!("{error}"));
    let url = cluster.url("postgres");
    *CLUSTER.lock().unwrap() = Some((cluster, folder));
    // SAFETY: `end` has the signature that atexit asks for, and does not unwind.
    unsafe { libc::atexit(end) };
    url
}

extern "C" fn end() {
    if let Ok(mut cluster) = CLUSTER.lock()
        && let Some((cluster, folder)) = cluster.take()
    {
        drop(cluster);
        _ = fs::remove_dir_all(folder);
    }
}
