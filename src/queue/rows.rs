//! How the engine's types stand in rows.

use std::time::Duration;

use postrider_actors::{ChannelName, MalformedId};
use sqlx::postgres::types::PgInterval;

/// Waits beyond this are all the same: later than any MAX_AGE, and still within what a timestamp can hold.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 86_400);

/// A duration as PostgreSQL's interval, to the microsecond, cut to 100 years.
pub(crate) fn interval(duration: Duration) -> PgInterval {
    let micros = duration.min(LONGEST).as_micros();
    PgInterval { months: 0, days: 0, microseconds: i64::try_from(micros).unwrap_or(i64::MAX) }
}

/// Microseconds as the database counts them; a negative number is a clock that went back, and zero.
pub(crate) fn from_micros(micros: i64) -> Duration {
    Duration::from_micros(u64::try_from(micros).unwrap_or(0))
}

/// A count that the schema keeps at or above zero.
pub(crate) fn unsigned(count: i32) -> u32 {
    u32::try_from(count).unwrap_or(0)
}

/// A channel's name as it stands in a row.
pub(crate) fn channel_name(text: &str) -> Result<ChannelName, sqlx::Error> {
    text.parse().map_err(|error: MalformedId| sqlx::Error::Decode(Box::new(error)))
}
