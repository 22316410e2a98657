//! The `postrider` program: migrates, serves, and shows operators what is delivered.
//!
//! Data goes to stdout, everything else to stderr, and a command that fails writes nothing to stdout. Exit codes are
//! in `failure.rs`, and all of it is documented in `docs/cli.md`.

mod announce;
mod arguments;
mod audit;
mod connection;
mod database;
mod deliveries;
mod demo;
mod duration;
mod failure;
mod keys;
mod logging;
mod login;
mod mail;
mod migrate;
mod operator;
mod serve;
mod signals;
mod tell;

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

pub use self::arguments::Arguments;
use self::arguments::{Command, Global};
use self::failure::{Exit, Failure};
use self::signals::Signals;

/// What tasks that are left may take to end once a command is done.
const LEFTOVERS: Duration = Duration::from_secs(2);

/// Performs what the arguments ask for. What fails is told on stderr.
pub fn run(arguments: Arguments) -> ExitCode {
    match perform(&arguments).and_then(|output| print(&output.text).map(|()| output.exit)) {
        Ok(None) => ExitCode::SUCCESS,
        Ok(Some(exit)) => ExitCode::from(exit as u8),
        Err(failure) => failure.report(),
    }
}

/// What a command that did not fail is to write to stdout, and its exit code where that is not 0.
struct Output {
    text: String,
    exit: Option<Exit>,
}

impl From<String> for Output {
    fn from(text: String) -> Self {
        Self { text, exit: None }
    }
}

fn perform(arguments: &Arguments) -> Result<Output, Failure> {
    logging::start(&arguments.global.log)?;
    if let Command::Keys(command) = &arguments.command {
        return keys::run(command).map(Output::from);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::new(Exit::Failed, "cannot start").because(&error))?;
    let done = runtime.block_on(perform_on_runtime(&arguments.global, &arguments.command));
    runtime.shutdown_timeout(LEFTOVERS);
    done
}

async fn perform_on_runtime(global: &Global, command: &Command) -> Result<Output, Failure> {
    let mut signals = Signals::install()?;
    let text = match command {
        Command::Audit(arguments) => return unless_interrupted(&mut signals, audit::run(global, arguments)).await,
        Command::Announce(arguments) => unless_interrupted(&mut signals, announce::run(global, arguments)).await,
        Command::Keys(command) => keys::run(command),
        Command::Mail(command) => mail::run(command, &mut signals).await,
        // A signal is how it ends in order.
        Command::Serve(arguments) => serve::run(global, arguments, &mut signals).await.map(|()| String::new()),
        Command::Demo => unless_interrupted(&mut signals, demo::run(global)).await,
        Command::Migrate => unless_interrupted(&mut signals, migrate::run(global)).await,
        Command::Deliveries(command) => unless_interrupted(&mut signals, deliveries::run(global, command)).await,
    };
    text.map(Output::from)
}

async fn unless_interrupted<T>(
    signals: &mut Signals,
    command: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    tokio::select! {
        done = command => done,
        () = signals.next() => Err(Failure::interrupted()),
    }
}

/// A reader that has gone, as `head` does, is no failure.
fn print(output: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(output.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::new(Exit::Failed, "cannot write to stdout").because(&error))
        }
        _ => Ok(()),
    }
}
