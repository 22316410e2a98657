//! The channels that an operator can mean.

use std::collections::BTreeSet;

use postrider_actors::ChannelName;
use sqlx::PgConnection;

use crate::channels::BackchannelLogout;
use crate::cli::failure::{Exit, Failure};

/// The channels that this program registers.
fn registered() -> [ChannelName; 1] {
    [BackchannelLogout::channel_name()]
}

/// Every channel that has rows, by stepping from name to name through the index.
async fn with_rows(connection: &mut PgConnection) -> Result<Vec<String>, sqlx::Error> {
    sqlx::query_scalar(
        "with recursive step (channel) as (
             (select d.channel from postrider.deliveries d order by d.channel limit 1)
             union all
             select (select d.channel from postrider.deliveries d where d.channel > step.channel order by d.channel limit 1)
               from step where step.channel is not null)
         select step.channel from step where step.channel is not null",
    )
    .fetch_all(connection)
    .await
}

/// Refuses a channel that is neither registered nor has rows: it is a slip of the pen.
pub(super) async fn refuse_unknown(connection: &mut PgConnection, channel: &ChannelName) -> Result<(), Failure> {
    if registered().contains(channel) {
        return Ok(());
    }
    let rows = with_rows(connection).await.map_err(super::failed("listing channels"))?;
    let known: BTreeSet<String> = rows.into_iter().chain(registered().map(|name| name.to_string())).collect();
    if known.contains(channel.as_str()) {
        return Ok(());
    }
    let known: Vec<String> = known.into_iter().collect();
    Err(Failure::new(Exit::Usage, format!("--channel {channel}: there is no such channel"))
        .advise(format!("name one of: {}", known.join(", "))))
}
