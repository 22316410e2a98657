//! What a server needs of the machine: a folder, a port, and another user than root.

use std::collections::BTreeSet;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::receivers::Ca;

/// Who servers run as where the tests run as root. Every system has it.
pub const NOBODY: u32 = 65534;

pub fn is_root() -> bool {
    // SAFETY: geteuid has no preconditions and cannot fail.
    unsafe { libc::geteuid() == 0 }
}

/// Who this process is, or nobody where it is root.
pub fn common_user() -> u32 {
    // SAFETY: geteuid has no preconditions and cannot fail.
    match unsafe { libc::geteuid() } {
        0 => NOBODY,
        user => user,
    }
}

/// Gone with the value.
pub struct Folder(PathBuf);

impl Folder {
    /// One whose files others may read.
    pub fn new(what: &str) -> Self {
        let path = std::env::temp_dir().join(format!("postrider-{what}-{}", uuid::Uuid::new_v4().simple()));
        fs::create_dir(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        Self(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn write(&self, name: &str, content: &str) {
        fs::write(self.0.join(name), content).unwrap();
    }

    /// What a server wrote so far; empty where it did not yet.
    pub fn read(&self, name: &str) -> String {
        String::from_utf8_lossy(&fs::read(self.0.join(name)).unwrap_or_default()).into_owned()
    }

    /// Gives the folder itself to `user`, who may then make files in it.
    pub fn give_to(&self, user: u32) {
        chown(&self.0, Some(user), Some(user)).unwrap();
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        _ = fs::remove_dir_all(&self.0);
    }
}

/// Key and certificate of a server, as those of other makes read them.
pub fn certificate_file(ca: &Ca, names: &[&str]) -> String {
    let identity = ca.certify(names);
    let key = pem::Pem::new("PRIVATE KEY", identity.key.secret_der());
    let certificate = pem::Pem::new("CERTIFICATE", identity.certificate.as_ref());
    pem::encode_many(&[key, certificate])
}

/// A loopback port that was free a moment ago, and another at each call. Whoever starts a server on it tries again where
/// it was taken since.
pub fn free_port() -> u16 {
    static GIVEN: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());
    loop {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        if GIVEN.lock().unwrap().insert(port) {
            return port;
        }
    }
}

/// Whether a process has ended, noted by its parent or not.
pub fn has_ended(process: i32) -> bool {
    state_and_group(&Path::new("/proc").join(process.to_string())).is_none_or(|(state, _)| state == "Z")
}

/// Whether every process of a group has.
pub fn group_has_ended(leader: i32) -> bool {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter_map(|process| state_and_group(&process.path()))
        .all(|(state, group)| group != leader.to_string() || state == "Z")
}

/// proc(5): the name in parentheses, state, parent, group.
fn state_and_group(process: &Path) -> Option<(String, String)> {
    let stat = fs::read_to_string(process.join("stat")).ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    Some((fields.next()?.to_owned(), fields.nth(1)?.to_owned()))
}
