use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use tokio::sync::watch;

/// How long a fast shutdown (SIGINT: sessions are ended, a checkpoint is written) may take.
pub(super) const FAST_SHUTDOWN: Duration = Duration::from_secs(10);
/// How long an immediate one (SIGQUIT: recovery at the next start) may take: the server itself kills what is left of
/// its children after 5 s.
pub(super) const IMMEDIATE_SHUTDOWN: Duration = Duration::from_secs(7);

/// A child process, and the thread that spawned it and waits for it. The thread lives until the child has ended, as
/// the kernel's "signal me when my parent dies" really means the thread that spawned: a worker thread of a runtime
/// may end long before the process.
#[derive(Debug)]
pub(super) struct Server {
    pid: u32,
    end: Arc<End>,
}

#[derive(Debug)]
struct End {
    /// Set once the child has been reaped, from when on its pid may be another's.
    status: Mutex<Option<ExitStatus>>,
    reaped: Condvar,
    told: watch::Sender<Option<ExitStatus>>,
}

impl End {
    fn status(&self) -> MutexGuard<'_, Option<ExitStatus>> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Server {
    pub(super) fn spawn(mut command: Command) -> io::Result<Self> {
        let end = Arc::new(End { status: Mutex::new(None), reaped: Condvar::new(), told: watch::Sender::new(None) });
        let (started, starting) = mpsc::channel();
        let theirs = Arc::clone(&end);
        thread::Builder::new().name("private-postgres".into()).spawn(move || match command.spawn() {
            Ok(child) => {
                // The receiver waits below.
                _ = started.send(Ok(child.id()));
                reap(child, &theirs);
            }
            Err(error) => _ = started.send(Err(error)),
        })?;
        let pid = starting.recv().map_err(io::Error::other)??;
        Ok(Self { pid, end })
    }

    pub(super) fn pid(&self) -> u32 {
        self.pid
    }

    /// How the server ended; None while it runs.
    pub(super) fn exit_status(&self) -> Option<ExitStatus> {
        *self.end.status()
    }

    /// Waits for the end of the server.
    pub(super) async fn ended(&self) -> ExitStatus {
        let mut told = self.end.told.subscribe();
        match told.wait_for(Option::is_some).await {
            Ok(status) => status.unwrap_or_default(),
            // The sender lives in `self`.
            Err(_) => ExitStatus::default(),
        }
    }

    /// Stops the server and waits: fast, then immediate, then by force. Idempotent. False if it still has not ended,
    /// which takes a process that the kernel cannot kill.
    pub(super) fn stop(&self) -> bool {
        let steps = [
            (libc::SIGINT, FAST_SHUTDOWN),
            (libc::SIGQUIT, IMMEDIATE_SHUTDOWN),
            (libc::SIGKILL, Duration::from_secs(2)),
        ];
        steps.into_iter().any(|(signal, patience)| {
            let status = self.end.status();
            if status.is_none() {
                send(self.pid, signal);
            }
            let waited = self.end.reaped.wait_timeout_while(status, patience, |status| status.is_none());
            waited.unwrap_or_else(PoisonError::into_inner).0.is_some()
        })
    }
}

/// Waits for the child's end and reaps it under the lock, so that nobody signals a pid that is free again.
fn reap(mut child: Child, end: &End) {
    let pid = child.id();
    // SAFETY: waitid writes to `info`, which lives on this stack; WNOWAIT leaves the child to be reaped below.
    unsafe {
        let mut info = std::mem::zeroed::<libc::siginfo_t>();
        while libc::waitid(libc::P_PID, pid, &raw mut info, libc::WEXITED | libc::WNOWAIT) != 0
            && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
        {}
    }
    let mut status = end.status();
    let ended = child.wait().unwrap_or_else(|_| ExitStatus::from_raw(libc::SIGKILL));
    *status = Some(ended);
    drop(status);
    end.reaped.notify_all();
    end.told.send_replace(Some(ended));
}

/// Sends a signal; false if there is no such process or it may not be signalled.
pub(super) fn send(pid: u32, signal: i32) -> bool {
    let Ok(pid) = libc::pid_t::try_from(pid) else { return false };
    // SAFETY: kill has no memory effects; pid is positive, so it names one process and never a group.
    pid > 0 && unsafe { libc::kill(pid, signal) == 0 }
}
