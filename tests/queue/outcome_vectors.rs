//! tests/data/http_outcomes.csv, and the rows of smtp_replies.csv that turn on a delivery's age, on the real queue: what
//! each answer does to a row of that attempt and age.

use std::time::Duration;

use postrider::mail::smtp::{Stage, judge};
use postrider::outbound::{classify, retry_after};
use postrider_actors::laws::{Harness, wishes};
use postrider_actors::{Backoff, ChannelPolicy, Ended, Jitter, Outcome, Queue, Reason, ReplyCode, Search, Status};

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

/// One attempt that has just ended.
struct Attempt {
    number: u32,
    max_age: f64,
    age: f64,
    outcome: Outcome,
}

impl Attempt {
    fn of(row: &Row) -> Self {
        let seconds = |column: &str| row[column].parse::<f64>().unwrap();
        let number = row["attempt"].parse().unwrap();
        Self { number, max_age: seconds("max_age_s"), age: seconds("age_s"), outcome: outcome(row) }
    }
}

/// Puts the attempt's delivery there, claims it, records its outcome at exactly its age, and reads what became of it.
async fn settle(postgres: &Postgres, ended: &Attempt, jitter: f64) -> (Status, Option<f64>) {
    let attempt = ended.number;
    let id = postgres.record(wishes(1, None)).await[0];
    sqlx::query("update postrider.deliveries set attempt = $2 where id = $1")
        .bind(id.as_uuid())
        .bind(i32::try_from(attempt).unwrap() - 1)
        .execute(postgres.database.pool())
        .await
        .unwrap();
    let channel =
        ChannelPolicy { max_age: Duration::from_secs_f64(ended.max_age), ..postrider_actors::laws::channel() };
    let slots = 1.try_into().unwrap();
    let lease =
        postgres.queue.claim(&channel.name, slots, Duration::from_secs(60), Search::All).await.unwrap().remove(0);
    assert_eq!(lease.attempt_since_retry, attempt);
    let verdict = Backoff::default().verdict(ended.outcome, attempt, &Jitter::from_fn(move || jitter));
    // The age is counted at the recording. Taken back by what a recording takes, so that "exactly at MAX_AGE" is not
    // past it; what lies a second past it still is.
    let age = (ended.age - 0.9).max(0.0);
    let aged =
        "update postrider.deliveries set status_since = clock_timestamp() - $2 * interval '1 second' where id = $1";
    sqlx::query(aged).bind(id.as_uuid()).bind(age).execute(postgres.database.pool()).await.unwrap();
    let (delivery, token) = (lease.delivery.id, lease.token);
    let recorded = Ended { delivery, token, ordered: false, verdict, effect: None };
    let _ = postgres.queue.record(&channel, &[recorded]).await.unwrap();
    // The wait as the row has it, to the statement that wrote it: a second or less of error.
    let read = "delete from postrider.deliveries where id = $1
                returning status, extract(epoch from due_at - clock_timestamp())::float8";
    let (status, wait): (String, f64) =
        sqlx::query_as(read).bind(id.as_uuid()).fetch_one(postgres.database.pool()).await.unwrap();
    let status: Status = status.parse().unwrap();
    (status, (status == Status::Pending).then_some(wait))
}

fn expected(row: &Row) -> Status {
    match row["outcome"].as_str() {
        "succeeded" => Status::Succeeded,
        "failed" => Status::Failed,
        "retry" => Status::Pending,
        other => panic!("unknown outcome {other}"),
    }
}

#[tokio::test]
async fn every_row_of_http_outcomes_is_settled_as_it_says() {
    let postgres = postgres().await;
    let rows = rows();
    assert!(rows.len() > 150, "the vectors are cut short");
    let mut wrong = Vec::new();
    for row in &rows {
        for jitter in [0.0, 0.5, 0.999_999] {
            let (status, wait) = settle(&postgres, &Attempt::of(row), jitter).await;
            let expected = expected(row);
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

/// What tests/smtp has of the relay in the row, by the same table. The channel's MAX_AGE is 24 h.
fn relays_outcome(row: &Row) -> Outcome {
    let stage = match row["stage"].as_str() {
        "connect" => Stage::Session,
        "mail" | "rcpt" => Stage::Envelope,
        "data_end" => Stage::Data,
        other => panic!("a row at {other}"),
    };
    match row["reply"].split(' ').next().unwrap() {
        "{{timeout}}" => judge(stage, Reason::Timeout),
        "250" => Outcome::Succeeded,
        code => judge(stage, Reason::Code(ReplyCode::new(code.parse().unwrap()).unwrap())),
    }
}

#[tokio::test]
async fn every_aged_row_of_smtp_replies_is_settled_as_it_says() {
    let postgres = postgres().await;
    let rows = vectors::rows("smtp_replies.csv");
    let aged: Vec<&Row> = rows.iter().filter(|row| row["age_s"] != "0").collect();
    assert_eq!(aged.len(), 5, "the vectors are cut short");
    for row in aged {
        // Of a row that is at MAX_AGE already, any wait above the age taken back is later.
        for jitter in [0.0, 0.5] {
            let (number, age) = (20, row["age_s"].parse().unwrap());
            let attempt = Attempt { number, max_age: 86_400.0, age, outcome: relays_outcome(row) };
            let (status, wait) = settle(&postgres, &attempt, jitter).await;
            assert_eq!(status, expected(row), "{} (jitter {jitter}): {}", row["id"], row["why"]);
            assert!(wait.is_none_or(|wait| wait <= 3600.0), "{}", row["id"]);
        }
    }
}
