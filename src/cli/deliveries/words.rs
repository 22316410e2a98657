//! Times in words.

use chrono::{DateTime, TimeDelta, Utc};

use crate::queue::DeliveryRow;

/// Where the delivery stands: `due in 12s`, `leased for 43s`, `waits behind its key`, `since 3m`.
pub(super) fn when(row: &DeliveryRow, now: DateTime<Utc>) -> String {
    if row.status != "pending" {
        return format!("since {}", length(now - row.status_since));
    }
    if !row.claimable {
        return "waits behind its key".to_owned();
    }
    match (row.leased_until, row.due_at) {
        (Some(until), _) if until > now => format!("leased for {}", length(until - now)),
        (Some(until), _) => format!("lease ended {} ago", length(now - until)),
        (None, Some(due)) if due > now => format!("due in {}", length(due - now)),
        (None, Some(due)) => format!("due since {}", length(now - due)),
        (None, None) => format!("since {}", length(now - row.status_since)),
    }
}

/// `3m ago` or `in 3m`.
pub(super) fn ago(at: DateTime<Utc>, now: DateTime<Utc>) -> String {
    if at > now { format!("in {}", length(at - now)) } else { format!("{} ago", length(now - at)) }
}

/// In the largest unit of which there is more than one or so; a negative length is a clock that went back, and zero.
fn length(delta: TimeDelta) -> String {
    let seconds = delta.num_seconds().max(0);
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7_200 => format!("{}m", seconds / 60),
        7_200..172_800 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(1_800_000_000 + seconds, 0).unwrap()
    }

    fn pending() -> DeliveryRow {
        DeliveryRow {
            id: uuid::Uuid::nil(),
            channel: "email".to_owned(),
            status: "pending".to_owned(),
            status_since: at(0),
            owner: "owner".to_owned(),
            subject: None,
            ordering_key: None,
            ordinal: None,
            destination: "destination".to_owned(),
            claimable: true,
            due_at: None,
            leased_until: None,
            attempts: 0,
            last_error: None,
            created_at: at(0),
        }
    }

    #[test]
    fn each_situation_has_its_words() {
        let now = at(100);
        assert_eq!(when(&DeliveryRow { due_at: Some(at(112)), ..pending() }, now), "due in 12s");
        assert_eq!(when(&DeliveryRow { due_at: Some(at(97)), ..pending() }, now), "due since 3s");
        assert_eq!(when(&DeliveryRow { leased_until: Some(at(143)), ..pending() }, now), "leased for 43s");
        assert_eq!(when(&DeliveryRow { leased_until: Some(at(90)), ..pending() }, now), "lease ended 10s ago");
        assert_eq!(when(&DeliveryRow { claimable: false, ..pending() }, now), "waits behind its key");
        assert_eq!(when(&DeliveryRow { status: "failed".to_owned(), ..pending() }, at(190)), "since 3m");
    }

    #[test]
    fn lengths_are_short() {
        let lengths =
            [(-5, "0s"), (0, "0s"), (119, "119s"), (120, "2m"), (7_199, "119m"), (7_200, "2h"), (172_800, "2d")];
        for (seconds, words) in lengths {
            assert_eq!(length(TimeDelta::seconds(seconds)), words);
        }
    }
}
