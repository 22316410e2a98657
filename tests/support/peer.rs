//! Independent implementations in Python, each in a process of its own.
// Each test uses a part of it.
#![allow(dead_code)]

use std::env;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::Value;

/// A Python that has what `scripts/install-test-peers.sh` installs. Its absence fails the test: a check that is skipped
/// checks nothing.
pub fn python() -> PathBuf {
    let installed = env::var_os("POSTRIDER_TEST_PEERS")
        .map_or_else(|| [env!("CARGO_MANIFEST_DIR"), "target", "peers"].iter().collect(), PathBuf::from);
    let python = installed.join("bin").join("python");
    assert!(python.exists(), "{} is missing: run scripts/install-test-peers.sh", python.display());
    python
}

/// The path of a script of `tests/peers`.
pub fn script(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests", "peers", name].iter().collect()
}

/// A script that answers one line of JSON for each that it is given, as often as it is asked. It ends with this.
pub struct Peer {
    process: Child,
    questions: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Peer {
    pub fn start(name: &str) -> Self {
        let mut process = Command::new(python())
            .arg(script(name))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("Python starts");
        let questions = process.stdin.take();
        let answers = BufReader::new(process.stdout.take().expect("its output is piped"));
        Self { process, questions, answers }
    }

    pub fn ask(&mut self, question: &Value) -> Value {
        let questions = self.questions.as_mut().expect("it is asked while it runs");
        writeln!(questions, "{question}").and_then(|()| questions.flush()).expect("the peer reads");
        let mut answer = String::new();
        self.answers.read_line(&mut answer).expect("the peer writes");
        serde_json::from_str(&answer).expect("the peer broke (see above; run scripts/install-test-peers.sh?)")
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // The end of its input ends it.
        self.questions.take();
        let _ = self.process.wait();
    }
}
