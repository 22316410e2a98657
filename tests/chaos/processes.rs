//! Processes of the test's own: this test, run again there. None outlives the test, stopped or not.

use std::path::Path;
use std::process::Stdio;

use tokio::process::{Child, Command};

#[derive(Debug, Clone, Copy)]
pub enum Signal {
    Kill,
    Stop,
    Continue,
}

pub fn send(pid: u32, signal: Signal) {
    let number = match signal {
        Signal::Kill => libc::SIGKILL,
        Signal::Stop => libc::SIGSTOP,
        Signal::Continue => libc::SIGCONT,
    };
    // SAFETY: kill has no memory effects; a process of ours that has not been waited for keeps its id.
    unsafe { libc::kill(pid.try_into().unwrap(), number) };
}

/// Runs the test `name` of this program again, in a process that is killed with this one.
pub fn again(name: &str, environment: &[(&str, &str)], output: &Path) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name, "--nocapture"]).envs(environment.iter().copied());
    let output = std::fs::OpenOptions::new().create(true).append(true).open(output).unwrap();
    command.stdin(Stdio::piped()).stdout(output.try_clone().unwrap()).stderr(output).kill_on_drop(true);
    let parent = std::process::id();
    // SAFETY: between fork and exec only system calls are made.
    unsafe {
        command.pre_exec(move || {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            // The parent may have gone before.
            if libc::getppid().cast_unsigned() == parent { Ok(()) } else { Err(std::io::ErrorKind::NotFound.into()) }
        });
    }
    command.spawn().unwrap()
}
