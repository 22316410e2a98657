//! `postrider deliveries list`.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use super::table::{Column, Table, cut, terminal_width, visible};
use super::{failed, known, words};
use crate::cli::failure::{Exit, Failure};
use crate::cli::tell::tell;
use crate::queue::{self, DeliveryRow, Listing};

/// The table's columns. Numbers and times are never cut.
const COLUMNS: [Column; 8] = [
    Column { heading: "ID", least: 36 },
    Column { heading: "CHANNEL", least: 8 },
    Column { heading: "STATUS", least: 9 },
    Column { heading: "ATTEMPTS", least: 8 },
    Column { heading: "WHEN", least: 20 },
    Column { heading: "LAST ERROR", least: 10 },
    Column { heading: "OWNER", least: 9 },
    Column { heading: "DESTINATION", least: 12 },
];

pub(super) async fn list(connection: &mut PgConnection, listing: &Listing, json: bool) -> Result<String, Failure> {
    if let Some(channel) = &listing.channel {
        known::refuse_unknown(connection, channel).await?;
    }
    let now = database_now(connection).await?;
    let rows = queue::list(connection, listing).await.map_err(failed("listing deliveries"))?;
    if json {
        return to_json(&rows);
    }
    if rows.is_empty() {
        tell("no such deliveries");
        return Ok(String::new());
    }
    let mut table = Table::new(COLUMNS);
    for row in &rows {
        table.push([
            row.id.to_string(),
            row.channel.clone(),
            row.status.clone(),
            row.attempts.to_string(),
            words::when(row, now),
            row.last_error.clone().unwrap_or_default(),
            row.owner.clone(),
            row.destination.clone(),
        ]);
    }
    let width = terminal_width();
    Ok(table.render(width).unwrap_or_else(|| stacked(&rows, now, width.unwrap_or(usize::MAX))))
}

/// Two lines for each delivery, for a terminal too narrow for the table.
fn stacked(rows: &[DeliveryRow], now: DateTime<Utc>, width: usize) -> String {
    let lines = rows.iter().flat_map(|row| {
        let error = row.last_error.as_deref().map(|error| format!(", {error}")).unwrap_or_default();
        let first = format!("{}  {}, {}{error}", row.id, row.status, words::when(row, now));
        let second = format!("  {}, attempts: {}, for {}: {}", row.channel, row.attempts, row.owner, row.destination);
        [first, second]
    });
    lines.map(|line| cut(&visible(&line), width) + "\n").collect()
}

/// Times are the database's, so ages are told by its clock.
pub(super) async fn database_now(connection: &mut PgConnection) -> Result<DateTime<Utc>, Failure> {
    let now = sqlx::query_scalar("select statement_timestamp()").fetch_one(connection).await;
    now.map_err(failed("reading the database's clock"))
}

/// The documented form: see docs/cli.md.
fn to_json(rows: &[DeliveryRow]) -> Result<String, Failure> {
    let json = serde_json::to_string_pretty(rows);
    json.map(|json| json + "\n").map_err(|error| Failure::new(Exit::Failed, "cannot write JSON").because(&error))
}
