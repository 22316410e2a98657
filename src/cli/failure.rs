//! How a command fails: what, why, and what to do next.

use std::error::Error;
use std::process::ExitCode;

use super::tell::tell;

/// The exit codes other than 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Exit {
    /// It failed.
    Failed = 1,
    /// The arguments, a setting or the database's schema do not allow it. What clap refuses exits so too.
    Usage = 2,
    /// There is no such delivery.
    NotFound = 3,
    /// The delivery's status does not allow it.
    NotAllowed = 5,
    /// The database cannot be reached.
    Unreachable = 7,
    /// An audit found something; what, is on stdout.
    Found = 8,
    /// SIGINT or SIGTERM came first.
    Interrupted = 130,
}

/// A command that failed.
#[derive(Debug)]
pub(super) struct Failure {
    exit: Exit,
    what: String,
    causes: Vec<String>,
    advice: Vec<String>,
}

impl Failure {
    pub(super) fn new(exit: Exit, what: impl Into<String>) -> Self {
        Self { exit, what: what.into(), causes: Vec::new(), advice: Vec::new() }
    }

    pub(super) fn interrupted() -> Self {
        Self::new(Exit::Interrupted, "interrupted")
    }

    /// Tells an error and all its sources, each once: many errors repeat their source in their own message.
    pub(super) fn because(mut self, error: &dyn Error) -> Self {
        let mut next = Some(error);
        while let Some(error) = next {
            let text = error.to_string();
            if !self.causes.last().unwrap_or(&self.what).ends_with(&text) {
                self.causes.push(text);
            }
            next = error.source();
        }
        self
    }

    /// Says what to do next.
    pub(super) fn advise(mut self, advice: impl Into<String>) -> Self {
        self.advice.push(advice.into());
        self
    }

    /// The error's own message is what failed, its sources are why.
    pub(super) fn of(exit: Exit, error: &dyn Error) -> Self {
        Self::new(exit, error.to_string()).because(error)
    }

    /// The whole of it, a line for each cause.
    fn text(&self) -> String {
        let mut text = format!("error: {}\n", self.what);
        self.causes.iter().for_each(|cause| text.push_str(&format!("  because: {cause}\n")));
        self.advice.iter().for_each(|advice| text.push_str(&format!("  next: {advice}\n")));
        text
    }

    /// Tells it on stderr.
    pub(super) fn report(&self) -> ExitCode {
        tell(self.text().trim_end());
        ExitCode::from(self.exit as u8)
    }
}

/// Whether the server answered, and refused, or the database could not be reached at all.
pub(super) fn exit_of(error: &sqlx::Error) -> Exit {
    use sqlx::Error as E;
    match error {
        // Classes 08 (connection), 53 (resources), 57 (operator intervention).
        E::Database(refused) => {
            let away = |code: &str| ["08", "53", "57"].iter().any(|class| code.starts_with(class));
            if refused.code().is_some_and(|code| away(&code)) { Exit::Unreachable } else { Exit::Failed }
        }
        E::Io(_) | E::Tls(_) | E::PoolTimedOut | E::PoolClosed | E::WorkerCrashed | E::Protocol(_) => Exit::Unreachable,
        _ => Exit::Failed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("outer: {0}")]
    struct Outer(#[source] std::io::Error);

    #[test]
    fn a_source_that_its_error_already_repeats_is_told_once() {
        let error = Outer(std::io::Error::other("inner"));
        let failure = Failure::new(Exit::Failed, "it failed").because(&error).advise("do this");
        assert_eq!(failure.text(), "error: it failed\n  because: outer: inner\n  next: do this\n");
    }
}
