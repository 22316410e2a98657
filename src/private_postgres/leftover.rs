//! A server that outlived its owner: found by its pid file, proven to be ours, and ended.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use super::error::Error;
use super::server::{FAST_SHUTDOWN, IMMEDIATE_SHUTDOWN};

/// Ends a server that still runs on `cluster`, whose folder's lock the caller holds: its owner is dead. Blocks until
/// it has ended, for at most about 20 s. A pid file that names a process that is something else by now (after a
/// reboot, say) is removed, as PostgreSQL itself would take that process for a server and refuse to start.
pub(super) fn stop(cluster: &Path) -> Result<(), Error> {
    let Some(pid) = postmaster_pid(cluster) else { return Ok(()) };
    if !runs_on(pid, cluster) {
        return remove_pid_file(cluster);
    }
    tracing::info!(pid, "stopping a PostgreSQL whose owner has gone");
    let steps =
        [(libc::SIGINT, FAST_SHUTDOWN), (libc::SIGQUIT, IMMEDIATE_SHUTDOWN), (libc::SIGKILL, Duration::from_secs(2))];
    for (signal, patience) in steps {
        super::server::send(pid, signal);
        let deadline = Instant::now() + patience;
        while Instant::now() < deadline {
            if !runs_on(pid, cluster) {
                return remove_pid_file(cluster);
            }
            thread::sleep(Duration::from_millis(10));
        }
    }
    Err(Error::DoesNotStop { pid })
}

/// The process that the cluster's pid file names.
fn postmaster_pid(cluster: &Path) -> Option<u32> {
    let content = fs::read_to_string(cluster.join("postmaster.pid")).ok()?;
    let pid: i64 = content.lines().next()?.trim().parse().ok()?;
    // A standalone backend writes its pid negated.
    u32::try_from(pid.abs()).ok().filter(|pid| *pid > 1)
}

/// Only called when no server runs on the cluster. Backends that outlived a killed server do no harm to the next one:
/// it finds their shared memory by the folder, with or without this file, and does not start before they are gone.
fn remove_pid_file(cluster: &Path) -> Result<(), Error> {
    let path = cluster.join("postmaster.pid");
    match fs::remove_file(&path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Error::io("remove", &path)(error)),
        _ => Ok(()),
    }
}

/// True if `pid` is a server on `cluster`: it was started with that path, or works in it (other users' working
/// folders cannot always be read). A zombie's command line is empty, so it does not count.
fn runs_on(pid: u32, cluster: &Path) -> bool {
    if !Path::new("/proc/self").exists() {
        return is_alive(pid);
    }
    let process = Path::new("/proc").join(pid.to_string());
    let command_line = fs::read(process.join("cmdline")).unwrap_or_default();
    let mut arguments = command_line.split(|byte| *byte == 0);
    arguments.any(|argument| argument == cluster.as_os_str().as_bytes())
        || fs::read_link(process.join("cwd")).is_ok_and(|cwd| cwd == cluster)
}

/// True if a process with this id exists and is no zombie.
pub(super) fn is_alive(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"));
    match stat {
        Ok(stat) => !stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z')),
        Err(_) => !Path::new("/proc/self").exists() && super::server::send(pid, 0),
    }
}
