//! A private PostgreSQL that another process owns: found in its folder, and connected to beside its owner.

use std::fs;
use std::path::{Path, PathBuf};

use sqlx::postgres::{PgConnectOptions, PgSslMode};

use super::error::Error;
use super::folder::{self, Holder};
use super::{USER, folder::PORT};

/// What a data folder holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// No private PostgreSQL: nothing was ever made there, or not to the end.
    Nothing,
    /// One that does not run.
    Stopped,
    /// One that another process owns, and runs or is about to run.
    Running(Attached),
}

/// The way to a server that another process owns. It may end at any time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attached {
    run_folder: PathBuf,
}

impl Attached {
    /// How to connect to one of its databases, as its superuser.
    #[must_use]
    pub fn connect_options(&self, database: &str) -> PgConnectOptions {
        connect_options(&self.run_folder, database)
    }
}

/// Looks what a data folder holds. Changes nothing, and makes no folder.
///
/// # Errors
/// [`Error::Foreign`], [`Error::NotACluster`], or a folder that may not be looked into.
pub fn look(data: &Path) -> Result<Found, Error> {
    let root = match fs::canonicalize(data) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Found::Nothing),
        result => result.map_err(Error::io("find", data))?,
    };
    match folder::holder(&root)? {
        Holder::Nobody => Ok(Found::Nothing),
        Holder::Free if folder::holds_cluster(&root.join("pg"))? => Ok(Found::Stopped),
        Holder::Free => Ok(Found::Nothing),
        Holder::Owned => Ok(Found::Running(Attached { run_folder: folder::run_folder(&root) })),
    }
}

pub(super) fn connect_options(run_folder: &Path, database: &str) -> PgConnectOptions {
    let options = PgConnectOptions::new_without_pgpass().socket(run_folder).port(PORT);
    options.username(USER).database(database).ssl_mode(PgSslMode::Disable)
}
