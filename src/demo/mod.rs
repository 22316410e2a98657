//! The demo: an identity provider's sessions end, and a dozen receivers that behave well, badly and worse are told; then
//! it writes e-mail.
//!
//! Everything is real: a database, the subsystem, HTTPS receivers on this machine that check each logout token against
//! the published keys, a mail server that keeps what it is given. At the end what came is compared with what was
//! expected.
//!
//! It starts nothing that outlives it. Dropping its future ends receivers and actors too, as a crash would.

mod authority;
mod cast;
mod database;
mod domain;
mod endings;
mod error;
mod facts;
mod health;
mod mail;
pub mod mailbox;
mod narrator;
mod opening;
mod pace;
mod plan;
mod receiver;
mod report;
#[cfg(test)]
mod report_tests;
mod script;
mod stage;
mod watch;

use std::io::Write;
use std::time::Duration;

use sqlx::postgres::PgConnectOptions;

pub use self::error::DemoError;
pub use self::mail::{Kind, MailLine, MailReport, MailSetupError};
pub use self::report::{DemoReport, LogoutReport, ReceiverReport, SilentSessions};

/// How the demo is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DemoOptions {
    /// The time of one attempt, which a receiver that hangs takes in full; 10 s by default. All other times follow.
    pub send_timeout: Duration,
    /// The output is a terminal: its last line may be drawn again. Off by default.
    pub redraws_status: bool,
    /// The arguments that lead other commands to the same database, for the hint at the end.
    pub database_arguments: String,
    /// How the program is called, for the lines at the end.
    pub program: String,
    /// For tests of the demo itself: the first receiver and the mailbox do not do what is expected of them.
    #[doc(hidden)]
    pub misbehaving: bool,
}

impl Default for DemoOptions {
    fn default() -> Self {
        Self {
            send_timeout: Duration::from_secs(10),
            redraws_status: false,
            database_arguments: String::new(),
            program: "postrider".into(),
            misbehaving: false,
        }
    }
}

/// Shows the demo on a database that is empty or that demos alone have used, and says on `output` what happens.
///
/// # Errors
/// Where it could not be shown to its end. A difference from what was expected is none:
/// [`differs`](DemoReport::differs) tells.
pub async fn run(
    database: PgConnectOptions,
    options: &DemoOptions,
    output: &mut (dyn Write + Send),
) -> Result<DemoReport, DemoError> {
    script::perform(&database, options, output).await
}
