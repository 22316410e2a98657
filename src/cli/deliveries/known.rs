//! The channels that an operator can mean.

use std::collections::BTreeSet;

use postrider_actors::ChannelName;
use sqlx::PgConnection;

use crate::channels::policies;
use crate::cli::failure::{Exit, Failure};
use crate::queue::channels_with_rows;

/// The channels that this program registers.
fn registered() -> [ChannelName; 3] {
    policies().map(|policy| policy.name)
}

/// Refuses a channel that is neither registered nor has rows: it is a slip of the pen.
pub(super) async fn refuse_unknown(connection: &mut PgConnection, channel: &ChannelName) -> Result<(), Failure> {
    if registered().contains(channel) {
        return Ok(());
    }
    let rows = channels_with_rows(connection).await.map_err(super::failed("listing channels"))?;
    let known: BTreeSet<String> = rows.into_iter().chain(registered().map(|name| name.to_string())).collect();
    if known.contains(channel.as_str()) {
        return Ok(());
    }
    let known: Vec<String> = known.into_iter().collect();
    Err(Failure::new(Exit::Usage, format!("--channel {channel}: there is no such channel"))
        .advise(format!("name one of: {}", known.join(", "))))
}
