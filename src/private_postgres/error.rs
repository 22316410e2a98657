use std::io;
use std::path::{Path, PathBuf};

use super::binaries::OLDEST_MAJOR;

/// Why a private PostgreSQL could not be found, started or stopped. Every message says what to do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No folder that was searched holds both `initdb` and `postgres`.
    #[error(
        "PostgreSQL {OLDEST_MAJOR} or newer is needed, but no initdb and postgres were found in {searched}; \
         install them with `apt-get install postgresql` or run scripts/get-postgres.sh, \
         or name their folder in POSTRIDER_PG_BIN"
    )]
    BinariesMissing {
        /// The places that were searched, for people.
        searched: String,
    },
    /// Binaries were found, but of a release that is too old.
    #[error(
        "PostgreSQL {OLDEST_MAJOR} or newer is needed, but {} holds {version}; \
         install a newer one with `apt-get install postgresql` or run scripts/get-postgres.sh",
        folder.display()
    )]
    BinariesTooOld {
        /// The folder that holds them.
        folder: PathBuf,
        /// Their release as they print it, for example `13.4`.
        version: String,
    },
    /// `postgres --version` did not run or did not print a version.
    #[error("{} does not tell its version: {reason}", program.display())]
    BinariesUnusable {
        /// The program that was run.
        program: PathBuf,
        /// What went wrong instead.
        reason: String,
    },
    /// No place for data can be worked out, as neither `HOME` nor `XDG_STATE_HOME` is set.
    #[error("neither HOME nor XDG_STATE_HOME is set; name a data folder with --data")]
    NoHome,
    /// Another live process owns the data folder.
    #[error("data folder {} is in use by {}", folder.display(), owner(*pid))]
    InUse {
        /// The data folder.
        folder: PathBuf,
        /// Its owner's process id, where it could be read.
        pid: Option<u32>,
    },
    /// The folder holds files, but none that says Postrider made it. It was not touched.
    #[error(
        "{} is not empty and was not made by Postrider; nothing in it was touched: \
         choose another folder with --data",
        folder.display()
    )]
    Foreign {
        /// The folder that was refused.
        folder: PathBuf,
    },
    /// The folder is ours, but what should be the database cluster in it is not one.
    #[error("{} holds no complete database cluster; move it away to begin anew", cluster.display())]
    NotACluster {
        /// The cluster's folder.
        cluster: PathBuf,
    },
    /// The cluster was made by another major release than the binaries found.
    #[error(
        "{} was made by PostgreSQL {made_by}, but the binaries found are {binaries}; \
         name the folder of the right ones in POSTRIDER_PG_BIN, or choose another folder with --data",
        cluster.display()
    )]
    OtherRelease {
        /// The cluster's folder.
        cluster: PathBuf,
        /// Major release that made the cluster, from its `PG_VERSION`.
        made_by: String,
        /// Major release of the binaries.
        binaries: u32,
    },
    /// PostgreSQL refuses to run as root, and no other user can reach the folder or the binaries.
    #[error(
        "PostgreSQL does not run as root, and no other user can enter {}: \
         run as a normal user, or choose a folder that others may enter (such as /var/lib/postrider) with --data",
        folder.display()
    )]
    NoAccount {
        /// The data folder.
        folder: PathBuf,
    },
    /// `initdb` failed.
    #[error("initdb failed ({status}); the end of {}:\n{tail}", log.display())]
    InitFailed {
        /// How it ended.
        status: String,
        /// The log file.
        log: PathBuf,
        /// The log's last lines.
        tail: String,
    },
    /// The server ended, or was not ready in time.
    #[error("PostgreSQL did not start: {reason}; the end of {}:\n{tail}", log.display())]
    StartFailed {
        /// What happened instead.
        reason: String,
        /// The log file.
        log: PathBuf,
        /// The log's last lines.
        tail: String,
    },
    /// The server ended without having been asked to.
    #[error("PostgreSQL ended by itself ({status}); the end of {}:\n{tail}", log.display())]
    Ended {
        /// How it ended.
        status: String,
        /// The log file.
        log: PathBuf,
        /// The log's last lines.
        tail: String,
    },
    /// A server does not end, whatever signal it is sent.
    #[error("PostgreSQL (pid {pid}) does not stop")]
    DoesNotStop {
        /// The server's process id.
        pid: u32,
    },
    /// A call to the operating system failed.
    #[error("could not {doing} {}", path.display())]
    Io {
        /// The act that failed, as a verb.
        doing: &'static str,
        /// What it was done to.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The server runs, but a database in it could not be made ready.
    #[error("could not make database {database:?} ready")]
    Database {
        /// The database's name.
        database: String,
        /// The cause.
        #[source]
        source: sqlx::Error,
    },
}

impl Error {
    /// For `map_err`: `doing` is a verb, as in "could not **create** /var/lib/postrider".
    pub(super) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { doing, path, source }
    }
}

fn owner(pid: Option<u32>) -> String {
    pid.map_or_else(|| "another process".to_owned(), |pid| format!("pid {pid}"))
}
