//! The real binary, away from the environment of whoever runs the tests.

use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::support::eventually;

/// Longer than anything takes that is not stuck.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A folder that goes with the test. Others may enter it, as a server that root starts runs as another user.
pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new() -> Self {
        let path = std::env::temp_dir().join(format!("postrider-cli-{}", uuid::Uuid::new_v4().simple()));
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// The path as an argument.
    pub fn arg(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        _ = std::fs::remove_dir_all(&self.0);
    }
}

/// What a command came to.
#[derive(Debug)]
pub struct Done {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Done {
    /// It succeeded; returns what it printed.
    pub fn ok(self) -> String {
        assert_eq!(self.code, Some(0), "{self:?}");
        self.stdout
    }

    pub fn json(self) -> Value {
        serde_json::from_str(&self.ok()).unwrap()
    }

    /// It failed with this code, said nothing on stdout, and each of `words` on stderr.
    pub fn failed(self, code: i32, words: &[&str]) -> Self {
        assert_eq!(self.code, Some(code), "{self:?}");
        assert_eq!(self.stdout, "", "{self:?}");
        for word in words {
            assert!(self.stderr.contains(word), "{word:?} is missing in {}", self.stderr);
        }
        self
    }
}

pub fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_postrider"));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("POSTRIDER_") || name.starts_with("PG")) {
        if name != "POSTRIDER_PG_BIN" {
            command.env_remove(name);
        }
    }
    command.env_remove("DATABASE_URL").args(arguments).stdin(Stdio::null()).kill_on_drop(true);
    command
}

/// Runs a command to its end.
pub async fn run(arguments: &[&str]) -> Done {
    run_command(command(arguments)).await
}

pub async fn run_command(mut command: Command) -> Done {
    let output = timeout(PATIENCE, command.output()).await.expect("the command ended").unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Done { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// A running `postrider serve`, or another command that serves.
pub struct Serve {
    child: Child,
    address: String,
    log: PathBuf,
}

impl Serve {
    /// Starts on a free port and waits until it listens.
    pub async fn start(scratch: &Scratch, arguments: &[&str]) -> Self {
        let mut command = command(&["serve", "--listen", "127.0.0.1:0"]);
        command.args(arguments);
        Self::of(scratch, command).await
    }

    /// Starts a command that serves, and waits until it listens.
    pub async fn of(scratch: &Scratch, mut command: Command) -> Self {
        let log = scratch.path(&format!("serve-{}.log", uuid::Uuid::new_v4().simple()));
        command.stdout(Stdio::null()).stderr(std::fs::File::create(&log).unwrap());
        let mut serve = Self { child: command.spawn().unwrap(), address: String::new(), log };
        eventually(PATIENCE, "serve listens", async || {
            if let Some(status) = serve.child.try_wait().unwrap() {
                panic!("serve ended ({status}): {}", serve.stderr());
            }
            let stderr = serve.stderr();
            let address = stderr.split_once("listening on http://").and_then(|(_, rest)| rest.split_once(": "));
            serve.address = address.map(|(address, _)| address.to_owned()).unwrap_or_default();
            !serve.address.is_empty()
        })
        .await;
        serve
    }

    pub fn address(&self) -> &str {
        &self.address
    }

    pub fn stderr(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Status, head and body of an answer.
    pub async fn get(&self, path: &str) -> (u16, String, String) {
        self.try_get(path).await.expect("an answer")
    }

    pub async fn try_get(&self, path: &str) -> Option<(u16, String, String)> {
        let exchange = async {
            let mut stream = TcpStream::connect(&self.address).await.ok()?;
            let request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.address);
            stream.write_all(request.as_bytes()).await.ok()?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.ok()?;
            let (head, body) = answer.split_once("\r\n\r\n")?;
            let status = head.split(' ').nth(1)?.parse().ok()?;
            Some((status, head.to_lowercase(), body.to_owned()))
        };
        timeout(PATIENCE, exchange).await.expect("an answer in time")
    }

    pub fn signal(&self, name: &str) {
        signal(self.child.id().expect("it runs"), name);
    }

    pub async fn ended(&mut self) -> ExitStatus {
        timeout(PATIENCE, self.child.wait()).await.expect("serve ended").unwrap()
    }

    /// As a crash of the machine would, to this process.
    pub async fn kill(mut self) {
        self.signal("KILL");
        self.ended().await;
    }

    /// In order; returns what was said on stderr.
    pub async fn terminate(mut self) -> String {
        self.signal("TERM");
        let status = self.ended().await;
        assert_eq!(status.code(), Some(0), "{}", self.stderr());
        self.stderr()
    }
}

pub fn signal(pid: u32, name: &str) {
    let status = std::process::Command::new("kill").args(["-s", name, &pid.to_string()]).status().unwrap();
    assert!(status.success());
}

/// A key in a file of the scratch folder.
pub async fn key(scratch: &Scratch) -> String {
    let file = scratch.arg("key.pem");
    if !Path::new(&file).exists() {
        run(&["keys", "generate", &file]).await.ok();
    }
    file
}
