//! The command line and the environment.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};

use super::announce::AnnounceArguments;
use super::audit::AuditArguments;
use super::deliveries::DeliveriesCommand;
use super::duration;
use super::keys::KeysCommand;
use super::mail::MailCommand;
use super::serve::ServeArguments;

const EXAMPLES: &str = "Examples:
  postrider migrate --database-url postgresql://host/db
  postrider keys generate signing.pem
  postrider serve --issuer https://id.example.com --signing-key signing.pem
  postrider demo
  postrider deliveries list --status failed
  postrider audit
  postrider announce --subject 'We move' --text-file move.txt --dry-run
  postrider mail preview --serve
  postrider deliveries retry 0190b5a4-8c7e-7c3a-9d52-3f1e6a7b8c9d

Exit codes: 0 done, 1 failed, 2 wrong arguments or settings, 3 no such delivery,
5 not allowed in the delivery's status, 7 database unreachable, 8 the audit found something,
130 interrupted.";

/// Outbound delivery that commits with your transaction, on PostgreSQL.
#[derive(Debug, Parser)]
#[command(name = "postrider", version, after_help = EXAMPLES, disable_help_subcommand = true)]
pub struct Arguments {
    #[command(flatten)]
    pub(super) global: Global,
    #[command(subcommand)]
    pub(super) command: Command,
}

/// What every command needs.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Database and log")]
pub(super) struct Global {
    /// The database, as a postgresql:// URL. Without it: the private PostgreSQL in --data.
    #[arg(long, global = true, env = "DATABASE_URL", hide_env_values = true, value_name = "URL")]
    pub(super) database_url: Option<String>,

    /// The folder of the private PostgreSQL that is used where no database is named. Default: /var/lib/postrider for
    /// root, else postrider in $XDG_STATE_HOME or ~/.local/state.
    #[arg(long, global = true, env = "POSTRIDER_DATA", value_name = "DIR")]
    pub(super) data: Option<PathBuf>,

    /// The folder with initdb and postgres for the private PostgreSQL. Default: found on this machine.
    #[arg(long, global = true, env = "POSTRIDER_PG_BIN", value_name = "DIR")]
    pub(super) pg_bin: Option<PathBuf>,

    /// How long to wait for the database to accept a connection. `serve` and `migrate` try again until then.
    #[arg(long, global = true, env = "POSTRIDER_DATABASE_TIMEOUT", value_name = "TIME", default_value = "5s",
          value_parser = duration::parse)]
    pub(super) database_timeout: Duration,

    /// What is logged to stderr: a level, or targets with levels such as info,postrider=debug.
    #[arg(long, global = true, env = "POSTRIDER_LOG", value_name = "FILTER", default_value = "info")]
    pub(super) log: String,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Bring the database up to this release. Any number may run at once.
    Migrate,
    /// Deliver: run the actors, and serve keys, metrics and health over HTTP, until SIGTERM.
    Serve(Box<ServeArguments>),
    /// Show it all: real HTTPS receivers that behave and misbehave, and what became of every delivery. Takes 20 seconds.
    Demo,
    /// See deliveries, retry them, cancel them.
    #[command(subcommand)]
    Deliveries(DeliveriesCommand),
    /// Announce something to every account: to its inbox, and by e-mail to those who did not opt out.
    Announce(AnnounceArguments),
    /// Look for broken promises in the live database; writes nothing, holds nobody up. Exit 8: something was found.
    Audit(AuditArguments),
    /// Make signing keys, and show the public half of them.
    #[command(subcommand)]
    Keys(KeysCommand),
    /// See what e-mails look like.
    #[command(subcommand)]
    Mail(MailCommand),
}
