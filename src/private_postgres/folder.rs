use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use super::account::{Account, is_root};
use super::error::Error;

/// Marks a folder as Postrider's, and is locked by the process that owns it for as long as it lives.
const LOCK: &str = "postrider.lock";
const LOCK_HEADING: &str = "Postrider's data folder; locked while in use\n";
/// What an otherwise empty folder may hold before its first use.
const ALLOWED_BEFOREHAND: [&str; 2] = ["lost+found", "pgbin"];
/// Port in the name of the socket: nothing listens on a network.
pub(super) const PORT: u16 = 5432;
/// Bytes in `sockaddr_un.sun_path`, the ending NUL included.
const SUN_PATH: usize = 108;
/// A log longer than this, in bytes, is put aside at the next start.
const LOG_LIMIT: u64 = 16 << 20;

/// A data folder that this process has locked. Its lock goes with this value.
#[derive(Debug)]
pub(super) struct Folder {
    root: PathBuf,
    lock: File,
}

impl Folder {
    /// Creates or opens, and locks, a data folder.
    pub(super) fn open(path: &Path) -> Result<Self, Error> {
        // As root the server runs as another user, who must be able to pass.
        let mode = if is_root() { 0o755 } else { 0o700 };
        DirBuilder::new().recursive(true).mode(mode).create(path).map_err(Error::io("create", path))?;
        let root = fs::canonicalize(path).map_err(Error::io("find", path))?;
        let mut lock = open_lock(&root)?;
        let content = read_lock(&mut lock).map_err(Error::io("read", &root.join(LOCK)))?;
        // Empty: its maker died, or is about to lock and write it.
        if !content.is_empty() && !content.starts_with(LOCK_HEADING) {
            return Err(Error::Foreign { folder: root });
        }
        match try_lock(&lock) {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(Error::InUse { pid: owner_of(&mut lock), folder: root });
            }
            Err(TryLockError::Error(source)) => return Err(Error::io("lock", &root.join(LOCK))(source)),
        }
        write_lock(&mut lock).map_err(Error::io("write", &root.join(LOCK)))?;
        Ok(Self { root, lock })
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// PostgreSQL's own data folder.
    pub(super) fn cluster(&self) -> PathBuf {
        self.root.join("pg")
    }

    pub(super) fn log_path(&self) -> PathBuf {
        self.root.join("postgres.log")
    }

    /// Opens the log for appending, after putting a long one aside as `postgres.log.1`.
    pub(super) fn open_log(&self) -> Result<File, Error> {
        let path = self.log_path();
        if fs::metadata(&path).is_ok_and(|found| found.len() > LOG_LIMIT) {
            fs::rename(&path, path.with_extension("log.1")).map_err(Error::io("rename", &path))?;
        }
        OpenOptions::new().append(true).create(true).mode(0o600).open(&path).map_err(Error::io("open", &path))
    }

    /// An empty folder, the account's own, to make a cluster in. It becomes [`Folder::cluster`] when it is complete,
    /// so that what an interrupted initdb leaves is never taken for one; such leavings are removed here.
    pub(super) fn new_cluster(&self, account: Account) -> Result<PathBuf, Error> {
        const PREFIX: &[u8] = b"pg.new-";
        for entry in fs::read_dir(&self.root).map_err(Error::io("list", &self.root))?.flatten() {
            if entry.file_name().as_bytes().starts_with(PREFIX) {
                fs::remove_dir_all(entry.path()).map_err(Error::io("remove", &entry.path()))?;
            }
        }
        let path = self.root.join(format!("pg.new-{}", std::process::id()));
        DirBuilder::new().mode(0o700).create(&path).map_err(Error::io("create", &path))?;
        account.give(&path)?;
        Ok(path)
    }

    pub(super) fn accept_cluster(&self, complete: &Path) -> Result<(), Error> {
        fs::rename(complete, self.cluster()).map_err(Error::io("rename", complete))?;
        File::open(&self.root).and_then(|root| root.sync_all()).map_err(Error::io("sync", &self.root))
    }

    /// An empty folder for the socket, which only the account (and root) may enter: `run`, or, where that cannot be a
    /// socket's folder, a temporary one that `run` then links to. What an earlier run left there is removed.
    pub(super) fn new_run_folder(&self, account: Account) -> Result<PathBuf, Error> {
        let run = self.root.join("run");
        self.remove_run_folder()?;
        if fits_a_socket(&run) {
            DirBuilder::new().mode(0o700).create(&run).map_err(Error::io("create", &run))?;
            account.give(&run)?;
            return Ok(run);
        }
        let name = format!("postrider-{}", uuid::Uuid::new_v4().simple());
        let short = Some(std::env::temp_dir().join(&name)).filter(|short| fits_a_socket(short));
        let short = short.unwrap_or_else(|| Path::new("/tmp").join(&name));
        DirBuilder::new().mode(0o700).create(&short).map_err(Error::io("create", &short))?;
        symlink(&short, &run).map_err(Error::io("create", &run))?;
        account.give(&short)?;
        Ok(short)
    }

    /// Removes `run` and, if it is a link, the temporary folder that it links to.
    pub(super) fn remove_run_folder(&self) -> Result<(), Error> {
        let run = self.root.join("run");
        if let Ok(target) = fs::read_link(&run) {
            let ours = target.file_name().is_some_and(|name| name.as_bytes().starts_with(b"postrider-"));
            if ours {
                absent_is_fine(fs::remove_dir_all(&target)).map_err(Error::io("remove", &target))?;
            }
            return fs::remove_file(&run).map_err(Error::io("remove", &run));
        }
        absent_is_fine(fs::remove_dir_all(&run)).map_err(Error::io("remove", &run))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Closing alone would leave the lock to a process that another thread is just starting. If it fails, that is
        // all that happens.
        _ = self.lock.unlock();
    }
}

/// The kernel bounds a socket's path, and PostgreSQL and libpq take a comma for the start of another folder.
fn fits_a_socket(run: &Path) -> bool {
    let path = run.join(format!(".s.PGSQL.{PORT}"));
    path.as_os_str().len() < SUN_PATH && path.to_str().is_some_and(|path| !path.contains(','))
}

/// The last lines of the log that were written since it was `from` bytes long.
pub(super) fn log_tail(log: &Path, from: u64) -> String {
    const LINES: usize = 12;
    const BYTES: u64 = 16 << 10;
    let read = || -> io::Result<String> {
        let mut file = File::open(log)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(from.max(length.saturating_sub(BYTES))))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    let text = read().unwrap_or_default();
    let lines: Vec<_> = text.lines().collect();
    lines[lines.len().saturating_sub(LINES)..].join("\n")
}

/// Who has a data folder, found without changing anything in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Holder {
    /// Postrider has not made anything there.
    Nobody,
    /// It is Postrider's, and no process owns it.
    Free,
    /// A live process owns it.
    Owned,
}

/// Looks who has the folder. Holds the lock, shared, for a moment, which an owner that starts just then waits out.
pub(super) fn holder(root: &Path) -> Result<Holder, Error> {
    let path = root.join(LOCK);
    let mut lock = match OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW).open(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Holder::Nobody),
        result => result.map_err(Error::io("open", &path))?,
    };
    let content = read_lock(&mut lock).map_err(Error::io("read", &path))?;
    if !content.is_empty() && !content.starts_with(LOCK_HEADING) {
        return Err(Error::Foreign { folder: root.to_owned() });
    }
    match lock.try_lock_shared() {
        Ok(()) => {
            // Closing gives it up all the same.
            _ = lock.unlock();
            Ok(Holder::Free)
        }
        Err(TryLockError::WouldBlock) => Ok(Holder::Owned),
        Err(TryLockError::Error(source)) => Err(Error::io("lock", &path)(source)),
    }
}

/// The folder of the socket: `run`, or what it links to.
pub(super) fn run_folder(root: &Path) -> PathBuf {
    let run = root.join("run");
    fs::read_link(&run).unwrap_or(run)
}

fn open_lock(root: &Path) -> Result<File, Error> {
    let path = root.join(LOCK);
    let options = |create: bool| {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(create).mode(0o644).custom_flags(libc::O_NOFOLLOW);
        options
    };
    loop {
        match options(false).open(&path) {
            Ok(file) => return Ok(file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(Error::io("open", &path)(error)),
        }
        let mut entries = fs::read_dir(root).map_err(Error::io("list", root))?.flatten();
        if entries.any(|entry| entry.file_name() != LOCK && !ALLOWED_BEFOREHAND.iter().any(|a| entry.file_name() == *a))
        {
            return Err(Error::Foreign { folder: root.to_owned() });
        }
        match options(true).open(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            result => return result.map_err(Error::io("create", &path)),
        }
    }
}

/// Tries for a moment: a process that its former owner was just starting when it died shares the lock until it runs its
/// program.
fn try_lock(lock: &File) -> Result<(), TryLockError> {
    const ATTEMPTS: u32 = 20;
    for _ in 1..ATTEMPTS {
        match lock.try_lock() {
            Err(TryLockError::WouldBlock) => thread::sleep(Duration::from_millis(10)),
            result => return result,
        }
    }
    lock.try_lock()
}

fn read_lock(lock: &mut File) -> io::Result<String> {
    lock.rewind()?;
    let mut bytes = Vec::new();
    lock.take(4096).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn write_lock(lock: &mut File) -> io::Result<()> {
    let content = format!("{LOCK_HEADING}pid {}\n", std::process::id());
    lock.rewind()?;
    lock.write_all(content.as_bytes())?;
    lock.set_len(content.len() as u64)
}

/// The pid of the lock's holder. One who only just took it may not have written its own yet: the pid is then the
/// former owner's, so a dead one is not reported.
fn owner_of(lock: &mut File) -> Option<u32> {
    let content = read_lock(lock).ok()?;
    let pid = content.strip_prefix(LOCK_HEADING)?.strip_prefix("pid ")?.trim().parse().ok()?;
    super::leftover::is_alive(pid).then_some(pid)
}

fn absent_is_fine(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// True if the folder holds a complete cluster; false if there is none.
pub(super) fn holds_cluster(cluster: &Path) -> Result<bool, Error> {
    match fs::symlink_metadata(cluster) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(Error::io("look at", cluster)(error)),
        Ok(found) if found.is_dir() && found.size() > 0 && cluster.join("global/pg_control").is_file() => Ok(true),
        Ok(_) => Err(Error::NotACluster { cluster: cluster.to_owned() }),
    }
}
