//! `postrider deliveries list`.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use super::table::{Column, Table, terminal_width};
use super::{failed, known, words};
use crate::cli::failure::{Exit, Failure};
use crate::queue::{self, DeliveryRow, Listing};

/// Narrowest a column becomes on a narrow terminal.
const COLUMNS: [Column; 8] = [
    Column { heading: "ID", least: 36 },
    Column { heading: "CHANNEL", least: 8 },
    Column { heading: "STATUS", least: 9 },
    Column { heading: "ATTEMPTS", least: 8 },
    Column { heading: "WHEN", least: 10 },
    Column { heading: "LAST ERROR", least: 10 },
    Column { heading: "OWNER", least: 8 },
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
        eprintln!("no such deliveries");
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
    Ok(table.render(terminal_width()))
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
