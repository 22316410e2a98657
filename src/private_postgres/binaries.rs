use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::account;
use super::error::Error;

/// The oldest major release that Postrider's SQL runs on.
pub const OLDEST_MAJOR: u32 = 14;

/// A folder with `initdb` and `postgres` of one release, new enough and proven to run.
#[derive(Debug, Clone)]
pub struct Binaries {
    folder: PathBuf,
    version: String,
    major: u32,
}

impl Binaries {
    /// The binaries in `explicit`, or else in the folder that `POSTRIDER_PG_BIN` names, and nowhere else; with neither,
    /// the first that are new enough of: `PATH`, the newest of Debian's `/usr/lib/postgresql/*/bin` and of
    /// `/usr/pgsql-*/bin`, and [`Binaries::unpacked_folder`].
    ///
    /// # Errors
    /// [`Error::BinariesMissing`], [`Error::BinariesTooOld`] or [`Error::BinariesUnusable`].
    pub fn find(explicit: Option<&Path>) -> Result<Self, Error> {
        let named = env::var_os("POSTRIDER_PG_BIN").filter(|value| !value.is_empty()).map(PathBuf::from);
        match explicit.map(Path::to_owned).or(named) {
            Some(folder) => Self::first_of([folder.clone()], &folder.display().to_string()),
            None => {
                let unpacked = Self::unpacked_folder().map(|folder| folder.join("bin"));
                let searched = match &unpacked {
                    Some(folder) => format!("PATH, /usr/lib/postgresql and {}", folder.display()),
                    None => "PATH and /usr/lib/postgresql".to_owned(),
                };
                Self::first_of(on_path().into_iter().chain(packaged()).chain(unpacked), &searched)
            }
        }
    }

    /// Where `scripts/get-postgres.sh` unpacks a server when told no folder: `/usr/local/lib/postrider/postgres` for
    /// root, else `postrider/postgres` in `$XDG_DATA_HOME` or `~/.local/share`. None without a home.
    #[must_use]
    pub fn unpacked_folder() -> Option<PathBuf> {
        if account::is_root() {
            return Some("/usr/local/lib/postrider/postgres".into());
        }
        Some(account::base_folder("XDG_DATA_HOME", ".local/share")?.join("postrider/postgres"))
    }

    /// The folder that holds the binaries.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The release as the server prints it, for example `15.18`.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The major release, for example 15.
    #[must_use]
    pub fn major(&self) -> u32 {
        self.major
    }

    pub(super) fn program(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The first folder with new enough binaries; else what was wrong with the best that was seen.
    fn first_of(folders: impl IntoIterator<Item = PathBuf>, searched: &str) -> Result<Self, Error> {
        let mut refusal = None;
        for folder in folders {
            let has = |name| folder.join(name).is_file();
            if !has("initdb") || !has("postgres") {
                continue;
            }
            match Self::examine(folder) {
                Ok(found) => return Ok(found),
                Err(error) => _ = refusal.get_or_insert(error),
            }
        }
        Err(refusal.unwrap_or_else(|| Error::BinariesMissing { searched: searched.to_owned() }))
    }

    fn examine(folder: PathBuf) -> Result<Self, Error> {
        // They will be run from another working folder.
        let folder = fs::canonicalize(&folder).map_err(Error::io("find", &folder))?;
        let program = folder.join("postgres");
        let unusable = |reason: String| Error::BinariesUnusable { program: program.clone(), reason };
        let output = Command::new(&program)
            .arg("--version")
            .stdin(Stdio::null())
            .output()
            .map_err(|e| unusable(e.to_string()))?;
        let printed = String::from_utf8_lossy(&output.stdout);
        let Some((version, major)) = parse_version(&printed) else {
            return Err(unusable(format!("{}, printed {:?}", output.status, printed.trim())));
        };
        if major < OLDEST_MAJOR {
            return Err(Error::BinariesTooOld { folder, version });
        }
        Ok(Self { folder, version, major })
    }
}

/// `postgres (PostgreSQL) 15.18 (Debian ...)` -> `15.18` and 15. A beta (`19beta1`) counts as its release.
fn parse_version(printed: &str) -> Option<(String, u32)> {
    let version = printed.split_once("(PostgreSQL) ")?.1.split_whitespace().next()?;
    let digits = version.split(|c: char| !c.is_ascii_digit()).next()?;
    Some((version.to_owned(), digits.parse().ok()?))
}

/// The folders that the `initdb`s on `PATH` really live in: a link such as `/usr/local/bin/initdb` is followed.
fn on_path() -> Vec<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .filter_map(|folder| fs::canonicalize(folder.join("initdb")).ok())
        .filter_map(|program| program.parent().map(Path::to_owned))
        .collect()
}

/// The folders of distributions' packages, newest release first.
fn packaged() -> Vec<PathBuf> {
    let releases = |parent: &str, prefix: &str| -> Vec<(u32, PathBuf)> {
        let entries = fs::read_dir(parent).into_iter().flatten().flatten();
        let release = |name: &OsStr| name.to_str()?.strip_prefix(prefix)?.parse().ok();
        entries.filter_map(|entry| Some((release(&entry.file_name())?, entry.path().join("bin")))).collect()
    };
    let mut found = releases("/usr/lib/postgresql", "");
    found.extend(releases("/usr", "pgsql-"));
    found.sort_by_key(|(release, _)| std::cmp::Reverse(*release));
    found.into_iter().map(|(_, folder)| folder).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_read_from_what_the_server_prints() {
        let debian = parse_version("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n");
        assert_eq!(debian, Some(("15.18".to_owned(), 15)));
        assert_eq!(parse_version("postgres (PostgreSQL) 19beta1\n"), Some(("19beta1".to_owned(), 19)));
        assert_eq!(parse_version("bash: postgres: not found"), None);
    }

    #[test]
    fn nothing_found_names_the_package_and_the_script() {
        let error = Binaries::first_of([PathBuf::from("/nonexistent")], "PATH").unwrap_err().to_string();
        assert!(error.contains("apt-get install postgresql") && error.contains("scripts/get-postgres.sh"), "{error}");
    }
}
