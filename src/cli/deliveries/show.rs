//! `postrider deliveries show`.

use std::fmt::Write;

use chrono::{DateTime, SecondsFormat, Utc};
use postrider_actors::DeliveryId;
use sqlx::PgConnection;

use super::list::database_now;
use super::table::visible;
use super::{failed, operate, words};
use crate::cli::failure::{Exit, Failure};
use crate::queue::{self, DeliveryRow, OperateError};

pub(super) async fn show(connection: &mut PgConnection, id: DeliveryId, json: bool) -> Result<String, Failure> {
    let now = database_now(connection).await?;
    let found = queue::get(connection, id).await.map_err(failed("reading the delivery"))?;
    let row = found.ok_or_else(|| operate::failure(&OperateError::NotFound(id)))?;
    if json {
        let json = serde_json::to_string_pretty(&row);
        let failure = |error| Failure::new(Exit::Failed, "cannot write JSON").because(&error);
        return json.map(|json| json + "\n").map_err(failure);
    }
    Ok(text(&row, now))
}

fn text(row: &DeliveryRow, now: DateTime<Utc>) -> String {
    let time =
        |at: DateTime<Utc>| format!("{} ({})", at.to_rfc3339_opts(SecondsFormat::Millis, true), words::ago(at, now));
    let ordinal = row.ordinal.map(|ordinal| format!(", number {ordinal}")).unwrap_or_default();
    let lines = [
        ("id", Some(row.id.to_string())),
        ("channel", Some(row.channel.clone())),
        ("status", Some(format!("{}, {}", row.status, words::when(row, now)))),
        ("attempts", Some(row.attempts.to_string())),
        ("last error", row.last_error.clone()),
        ("owner", Some(row.owner.clone())),
        ("subject", row.subject.clone()),
        ("ordering key", row.ordering_key.as_ref().map(|key| format!("{key}{ordinal}"))),
        ("destination", Some(row.destination.clone())),
        ("created", Some(time(row.created_at))),
        ("in this status since", Some(time(row.status_since))),
        ("due", row.due_at.map(time)),
        ("leased until", row.leased_until.map(time)),
    ];
    let mut text = String::new();
    for (name, value) in lines {
        if let Some(value) = value {
            // Writing to a String never fails.
            let _ = writeln!(text, "{name:<21} {}", visible(&value));
        }
    }
    text
}
