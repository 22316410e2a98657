use std::env;
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, chown, lchown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::binaries::Binaries;
use super::error::Error;

/// Who PostgreSQL, which refuses to run as root, runs as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Account {
    /// The caller, who is not root.
    Caller,
    /// Another user of the system, as the caller is root.
    User { uid: u32, gid: u32 },
    /// Root under another name: in a user namespace that shows root as this user. It needs no access that root lacks
    /// as the owner of files, so it works under folders that only root may enter.
    Namespace { uid: u32, gid: u32 },
}

impl Account {
    /// The first account that can enter `folder` and run the binaries.
    pub(super) fn choose(binaries: &Binaries, folder: &Path) -> Result<Self, Error> {
        if !is_root() {
            return Ok(Self::Caller);
        }
        let users: Vec<_> = ["postgres", "nobody"].into_iter().filter_map(passwd_entry).collect();
        let plain = users.iter().map(|&(uid, gid)| Self::User { uid, gid });
        let shown = users.iter().map(|&(uid, gid)| Self::Namespace { uid, gid });
        plain
            .chain(shown)
            .find(|account| account.can_run(binaries, folder))
            .ok_or_else(|| Error::NoAccount { folder: folder.to_owned() })
    }

    fn can_run(self, binaries: &Binaries, folder: &Path) -> bool {
        let mut command = Command::new(binaries.program("postgres"));
        command.arg("--version").current_dir(folder);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        self.apply(&mut command, libc::SIGKILL);
        command.status().is_ok_and(|status| status.success())
    }

    /// Makes `command` run as this account, in a process group of its own (so that a terminal's Ctrl-C reaches only
    /// the owner, who stops the server when it no longer needs it), without the caller's `PG*` variables, and makes
    /// the kernel send it `death_signal` when the thread that spawns it ends.
    pub(super) fn apply(self, command: &mut Command, death_signal: i32) {
        for (name, _) in env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"PG")) {
            command.env_remove(name);
        }
        command.env("LC_ALL", "C").process_group(0);
        let mut maps = None;
        match self {
            Self::Caller => {}
            Self::User { uid, gid } => _ = command.uid(uid).gid(gid),
            Self::Namespace { uid, gid } => maps = Some((format!("{uid} 0 1"), format!("{gid} 0 1"))),
        }
        let parent = std::process::id();
        let prepare = move || {
            if let Some((uid_map, gid_map)) = &maps {
                enter_user_namespace(uid_map.as_bytes(), gid_map.as_bytes())?;
            }
            die_with_parent(parent, death_signal)
        };
        // SAFETY: between fork and exec `prepare` only makes system calls on memory allotted before the fork.
        unsafe { command.pre_exec(prepare) };
    }

    /// Gives `path` itself to this account.
    pub(super) fn give(self, path: &Path) -> Result<(), Error> {
        match self.owner() {
            Some((uid, gid)) => chown(path, Some(uid), Some(gid)).map_err(Error::io("change the owner of", path)),
            None => Ok(()),
        }
    }

    /// Gives the folder and all in it to this account, if it does not own the folder yet: a cluster that was made by
    /// one account and is now run by another, as it moved or its parents' modes changed.
    pub(super) fn give_tree(self, folder: &Path) -> Result<(), Error> {
        let Some((uid, gid)) = self.owner() else { return Ok(()) };
        let found = fs::symlink_metadata(folder).map_err(Error::io("look at", folder))?;
        if found.uid() == uid {
            return Ok(());
        }
        // The folder itself comes last, so that an interrupted walk is walked again.
        give_contents(folder, uid, gid)
            .and_then(|()| lchown(folder, Some(uid), Some(gid)))
            .map_err(Error::io("change the owner of", folder))
    }

    /// Who files must belong to as seen outside any namespace; None where that is the caller anyway.
    fn owner(self) -> Option<(u32, u32)> {
        match self {
            Self::Caller => None,
            Self::User { uid, gid } => Some((uid, gid)),
            Self::Namespace { .. } => Some((0, 0)),
        }
    }
}

fn give_contents(folder: &Path, uid: u32, gid: u32) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            give_contents(&entry.path(), uid, gid)?;
        }
        lchown(entry.path(), Some(uid), Some(gid))?;
    }
    Ok(())
}

/// True for the superuser, as whom PostgreSQL refuses to run.
pub(super) fn is_root() -> bool {
    // SAFETY: geteuid has no preconditions and cannot fail.
    unsafe { libc::geteuid() == 0 }
}

/// The folder of the XDG base directory specification that `variable` names, else `fallback` in the home.
pub(super) fn base_folder(variable: &str, fallback: &str) -> Option<PathBuf> {
    let absolute = |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    absolute(variable).or_else(|| Some(absolute("HOME")?.join(fallback)))
}

/// User and group id from /etc/passwd, where system users live; initdb insists on an entry there too.
fn passwd_entry(name: &str) -> Option<(u32, u32)> {
    let passwd = fs::read_to_string("/etc/passwd").ok()?;
    let mut fields = passwd.lines().map(|line| line.split(':')).find(|fields| fields.clone().next() == Some(name))?;
    Some((fields.nth(2)?.parse().ok()?, fields.next()?.parse().ok()?))
}

#[cfg(target_os = "linux")]
fn enter_user_namespace(uid_map: &[u8], gid_map: &[u8]) -> io::Result<()> {
    // SAFETY: unshare takes flags only.
    if unsafe { libc::unshare(libc::CLONE_NEWUSER) } != 0 {
        return Err(io::Error::last_os_error());
    }
    write_all(c"/proc/self/setgroups", b"deny")?;
    write_all(c"/proc/self/uid_map", uid_map)?;
    write_all(c"/proc/self/gid_map", gid_map)
}

#[cfg(not(target_os = "linux"))]
fn enter_user_namespace(_: &[u8], _: &[u8]) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(target_os = "linux")]
fn write_all(path: &std::ffi::CStr, content: &[u8]) -> io::Result<()> {
    // SAFETY: the path is a C string, the buffer outlives the call, and the descriptor is this function's own.
    unsafe {
        let file = libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
        if file < 0 {
            return Err(io::Error::last_os_error());
        }
        let written = libc::write(file, content.as_ptr().cast(), content.len());
        let result = if written < 0 { Err(io::Error::last_os_error()) } else { Ok(()) };
        libc::close(file);
        result
    }
}

/// Asks for `signal` on the death of the spawning thread; refuses to go on if the parent is dead already. It comes
/// after every change of user, which clears the request.
#[cfg(target_os = "linux")]
fn die_with_parent(parent: u32, signal: i32) -> io::Result<()> {
    // SAFETY: prctl with PR_SET_PDEATHSIG takes a signal number only; getppid has no preconditions.
    unsafe {
        if libc::prctl(libc::PR_SET_PDEATHSIG, signal as libc::c_ulong) != 0 {
            return Err(io::Error::last_os_error());
        }
        if u32::try_from(libc::getppid()) != Ok(parent) {
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn die_with_parent(_: u32, _: i32) -> io::Result<()> {
    Ok(())
}
