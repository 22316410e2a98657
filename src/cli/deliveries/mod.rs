//! `postrider deliveries`: what operators see of deliveries and do to them.

mod known;
mod list;
mod operate;
mod show;
mod table;
mod words;

use clap::Subcommand;
use postrider_actors::{DeliveryId, Status};
use sqlx::PgConnection;

use super::arguments::Global;
use super::connection::{ask, failed};
use super::failure::Failure;
use super::operator::{By, nobody};

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
        by: By,
    },
    /// Cancel a pending or failed delivery; for good if it has an ordering key. An attempt under way may still arrive.
    Cancel {
        /// Which.
        id: DeliveryId,
        #[command(flatten)]
        by: By,
    },
}

/// Performs the command over one connection, within a bounded time.
pub(super) async fn run(global: &Global, command: &DeliveriesCommand) -> Result<String, Failure> {
    let by = match command {
        DeliveriesCommand::Retry { by, .. } | DeliveriesCommand::Cancel { by, .. } => Some(by.operator()?),
        _ => None,
    };
    let hint = "a long transaction may hold the delivery's row; see pg_stat_activity";
    ask(global, hint, async |connection| perform(connection, command, by.as_ref()).await).await
}

async fn perform(
    connection: &mut PgConnection,
    command: &DeliveriesCommand,
    by: Option<&crate::queue::Operator>,
) -> Result<String, Failure> {
    match (command, by) {
        (DeliveriesCommand::List { status, channel, limit, json }, _) => {
            let listing = crate::queue::Listing { status: *status, channel: channel.clone(), limit: *limit };
            list::list(connection, &listing, *json).await
        }
        (DeliveriesCommand::Show { id, json }, _) => show::show(connection, *id, *json).await,
        (DeliveriesCommand::Retry { id, .. }, Some(by)) => operate::retry(connection, *id, by).await,
        (DeliveriesCommand::Cancel { id, .. }, Some(by)) => operate::cancel(connection, *id, by).await,
        (DeliveriesCommand::Retry { .. } | DeliveriesCommand::Cancel { .. }, None) => Err(nobody()),
    }
}
