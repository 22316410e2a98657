use std::path::PathBuf;
use std::time::Duration;

use super::account;
use super::binaries::Binaries;
use super::error::Error;

/// The data folder of those who name none: `/var/lib/postrider` for root, else `postrider` in `$XDG_STATE_HOME` or
/// `~/.local/state`.
///
/// # Errors
/// [`Error::NoHome`] without a home.
pub fn default_data_folder() -> Result<PathBuf, Error> {
    if account::is_root() {
        return Ok("/var/lib/postrider".into());
    }
    let state = account::base_folder("XDG_STATE_HOME", ".local/state").ok_or(Error::NoHome)?;
    Ok(state.join("postrider"))
}

/// What to run, and where.
#[derive(Debug, Clone)]
pub struct Options {
    pub(super) binaries: Binaries,
    pub(super) data: PathBuf,
    pub(super) settings: Vec<(String, String)>,
    pub(super) start_timeout: Duration,
    pub(super) throw_away: bool,
}

impl Options {
    /// A server of these binaries on this data folder, which is created if it does not exist.
    pub fn new(binaries: Binaries, data: impl Into<PathBuf>) -> Self {
        let start_timeout = Duration::from_secs(120);
        Self { binaries, data: data.into(), settings: Vec::new(), start_timeout, throw_away: false }
    }

    /// Adds a PostgreSQL setting, such as `max_connections`. The address, port and socket are not to be changed.
    #[must_use]
    pub fn setting(mut self, name: &str, value: impl ToString) -> Self {
        self.settings.push((name.to_owned(), value.to_string()));
        self
    }

    /// How long the server may take to accept connections, recovery from a crash included; 120 s by default. It does
    /// not bound initdb, which takes a second or two.
    #[must_use]
    pub fn start_timeout(mut self, limit: Duration) -> Self {
        self.start_timeout = limit;
        self
    }

    /// Gives up safety against a crash of the server or the machine for speed: for tests, whose data nobody wants back.
    #[must_use]
    pub fn throw_away(mut self) -> Self {
        self.throw_away = true;
        for (name, value) in [("fsync", "off"), ("synchronous_commit", "off"), ("full_page_writes", "off")] {
            self = self.setting(name, value);
        }
        self
    }
}
