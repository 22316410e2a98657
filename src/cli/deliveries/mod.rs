//! `postrider deliveries`: what operators see of deliveries and do to them.

mod known;
mod list;
mod operate;
mod show;
mod table;
mod words;

use std::time::Duration;

use clap::Subcommand;
use postrider_actors::{DeliveryId, Status};
use sqlx::{Connection, PgConnection};

use super::arguments::Global;
use super::connection::{NoAnswer, Patience, connect, schema_failure};
use super::database::Database;
use super::failure::{Exit, Failure, exit_of};

/// For all that one command asks of the database.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Debug, Subcommand)]
pub(super) enum DeliveriesCommand {
    /// List deliveries, the latest change of status first.
    List {
        /// Only those pending, succeeded, failed or cancelled.
        #[arg(long)]
        status: Option<Status>,
        /// Only those of this channel.
        #[arg(long)]
        channel: Option<postrider_actors::ChannelName>,
        /// The most that are listed.
        #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=100_000))]
        limit: u32,
        /// A JSON array instead of a table; see docs/cli.md for its fields.
        #[arg(long)]
        json: bool,
    },
    /// Show one delivery.
    Show {
        /// Which.
        id: DeliveryId,
        /// A JSON object instead of text.
        #[arg(long)]
        json: bool,
    },
    /// Make a failed delivery, or a cancelled one without ordering key, due now. Its receiver may see it twice.
    Retry {
        /// Which.
        id: DeliveryId,
        #[command(flatten)]
        by: operate::By,
    },
    /// Cancel a pending or failed delivery; for good if it has an ordering key. An attempt under way may still arrive.
    Cancel {
        /// Which.
        id: DeliveryId,
        #[command(flatten)]
        by: operate::By,
    },
}

/// Performs the command over one connection, within a bounded time.
pub(super) async fn run(global: &Global, command: &DeliveriesCommand) -> Result<String, Failure> {
    let by = match command {
        DeliveriesCommand::Retry { by, .. } | DeliveriesCommand::Cancel { by, .. } => Some(by.operator()?),
        _ => None,
    };
    let database = Database::existing(global).await?;
    let done = match connect(&database, global, Patience::Once).await {
        Ok(mut connection) => {
            let work = perform(&database, &mut connection, command, by.as_ref());
            let done = tokio::time::timeout(ANSWER_TIMEOUT, work).await.unwrap_or_else(|_| Err(no_answer(&database)));
            // Nothing is left to be done on it.
            let _ = tokio::time::timeout(Duration::from_secs(1), connection.close()).await;
            done
        }
        Err(failure) => Err(failure),
    };
    database.close().await?;
    done
}

async fn perform(
    database: &Database,
    connection: &mut PgConnection,
    command: &DeliveriesCommand,
    by: Option<&crate::queue::Operator>,
) -> Result<String, Failure> {
    crate::check_schema(connection).await.map_err(|error| schema_failure(database, &error))?;
    match (command, by) {
        (DeliveriesCommand::List { status, channel, limit, json }, _) => {
            let listing = crate::queue::Listing { status: *status, channel: channel.clone(), limit: *limit };
            list::list(connection, &listing, *json).await
        }
        (DeliveriesCommand::Show { id, json }, _) => show::show(connection, *id, *json).await,
        (DeliveriesCommand::Retry { id, .. }, Some(by)) => operate::retry(connection, *id, by).await,
        (DeliveriesCommand::Cancel { id, .. }, Some(by)) => operate::cancel(connection, *id, by).await,
        (DeliveriesCommand::Retry { .. } | DeliveriesCommand::Cancel { .. }, None) => Err(operate::nobody()),
    }
}

fn no_answer(database: &Database) -> Failure {
    Failure::new(Exit::Unreachable, format!("the {} does not answer", database.shown()))
        .because(&NoAnswer(ANSWER_TIMEOUT))
        .advise("a long transaction may hold the delivery's row; see pg_stat_activity")
}

/// For `map_err`: `doing` is what failed, as in "**listing deliveries** failed".
fn failed(doing: &'static str) -> impl Fn(sqlx::Error) -> Failure {
    move |error| Failure::new(exit_of(&error), format!("{doing} failed")).because(&error)
}
