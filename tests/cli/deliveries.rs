//! `postrider deliveries`.

use serde_json::Value;
use uuid::Uuid;

use crate::program::{command, run, run_command};
use crate::support::{self, TestDatabase};
use crate::world::{status, waiting};

/// Every field of a delivery, as documented in docs/cli.md. Fields may be added; none goes and none changes.
const FIELDS: [&str; 15] = [
    "attempts",
    "channel",
    "claimable",
    "created_at",
    "destination",
    "due_at",
    "id",
    "last_error",
    "leased_until",
    "ordering_key",
    "ordinal",
    "owner",
    "status",
    "status_since",
    "subject",
];

async fn execute(database: &TestDatabase, statement: &'static str) {
    sqlx::query(statement).execute(database.pool()).await.unwrap();
}

#[tokio::test]
async fn json_is_an_array_of_objects_with_the_documented_fields() {
    let database = support::database().await;
    let url = database.url();
    assert_eq!(run(&["deliveries", "list", "--json", "--database-url", &url]).await.json(), Value::Array(Vec::new()));
    let id = waiting(&database).await;
    let listed = run(&["deliveries", "list", "--json", "--database-url", &url]).await.json();
    let one = listed[0].as_object().unwrap();
    let mut fields: Vec<&str> = one.keys().map(String::as_str).collect();
    fields.sort_unstable();
    assert_eq!(fields, FIELDS);
    assert_eq!(one["id"], id.to_string());
    assert_eq!(one["channel"], "backchannel_logout");
    assert_eq!(one["status"], "pending");
    assert_eq!(one["attempts"], 0);
    assert_eq!(one["destination"], "https://client.example.com/logout");
    assert_eq!(one["leased_until"], Value::Null);
    for time in ["created_at", "status_since", "due_at"] {
        chrono::DateTime::parse_from_rfc3339(one[time].as_str().unwrap()).unwrap();
    }
    let shown = run(&["deliveries", "show", &id.to_string(), "--json", "--database-url", &url]).await.json();
    assert_eq!(shown, listed[0]);
    let docs = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/cli.md")).unwrap();
    for field in FIELDS {
        assert!(docs.contains(&format!("| `{field}` |")), "docs/cli.md lacks {field}");
    }
}

#[tokio::test]
async fn the_table_says_in_words_where_each_delivery_stands() {
    let database = support::database().await;
    for _ in 0..6 {
        waiting(&database).await;
    }
    execute(
        &database,
        "with numbered as (select id, row_number() over (order by id) as n from postrider.deliveries)
         update postrider.deliveries d
            set due_at = statement_timestamp() + interval '90.5 seconds',
                claim_token = case when n = 2 then gen_random_uuid() end,
                attempt = n, last_error = case when n = 3 then '503' end,
                ordering_key = case when n = 4 then 'key' end, ordinal = case when n = 4 then 7 end, claimable = n <> 4,
                status = case n when 3 then 'failed' when 5 then 'cancelled' when 6 then 'succeeded' else 'pending' end,
                status_since = case when n in (1, 2, 4) then d.status_since
                                    else statement_timestamp() - interval '190 seconds' end
           from numbered where numbered.id = d.id",
    )
    .await;
    let table = run(&["deliveries", "list", "--database-url", &database.url()]).await.ok();
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines.len(), 7, "{table}");
    assert!(lines[0].starts_with("ID "), "{table}");
    let column = |heading| lines[0].find(heading).unwrap();
    for words in ["due in 90s", "leased for 90s", "waits behind its key", "since 3m"] {
        assert!(
            lines.iter().any(|line| line.get(column("WHEN")..).is_some_and(|rest| rest.starts_with(words))),
            "{table}"
        );
    }
    for line in &lines[1..] {
        // Piped: nothing is cut, and columns are aligned.
        assert!(line[column("DESTINATION")..].starts_with("https://client.example.com/logout"), "{table}");
        assert!(!line.contains('\u{1b}'), "colour in a pipe");
    }
    let failed = run(&["deliveries", "list", "--status", "failed", "--database-url", &database.url()]).await.ok();
    assert_eq!(failed.lines().count(), 2, "{failed}");
    assert!(failed.contains(" 503 "), "{failed}");
    let two = run(&["deliveries", "list", "--limit", "2", "--database-url", &database.url()]).await.ok();
    assert_eq!(two.lines().count(), 3, "{two}");
}

#[tokio::test]
async fn a_channel_is_known_by_registration_or_by_its_rows() {
    let database = support::database().await;
    let url = database.url();
    let of = async |channel: &str| run(&["deliveries", "list", "--channel", channel, "--database-url", &url]).await;
    assert_eq!(of("backchannel_logout").await.ok(), "");
    of("webhook").await.failed(2, &["--channel webhook", "name one of: announcement, backchannel_logout, email"]);
    waiting(&database).await;
    execute(&database, "update postrider.deliveries set channel = 'webhook'").await;
    assert_eq!(of("webhook").await.ok().lines().count(), 2);
    of("webhok")
        .await
        .failed(2, &["--channel webhok", "name one of: announcement, backchannel_logout, email, webhook"]);
    of("E-Mail").await.failed(2, &["--channel", "is not a channel name"]);
}

async fn recorded(database: &TestDatabase) -> Vec<(String, String, String)> {
    let events = "select kind, payload->>'delivery', payload->>'by' from postrider.events
                   where kind like 'delivery_%' order by id";
    sqlx::query_as(events).fetch_all(database.pool()).await.unwrap()
}

#[tokio::test]
async fn retry_and_cancel_do_it_and_record_who_did() {
    let database = support::database().await;
    let (url, id) = (database.url(), waiting(&database).await);
    execute(&database, "update postrider.deliveries set status = 'failed', attempt = 3, last_error = '404'").await;
    let retried = run(&["deliveries", "retry", &id.to_string(), "--by", "Ada", "--database-url", &url]).await;
    assert!(retried.stderr.contains("due now, by Ada"), "{retried:?}");
    assert_eq!(retried.ok(), "");
    assert_eq!(status(&database, id).await, "pending");

    let mut cancelled = command(&["deliveries", "cancel", &id.to_string(), "--database-url", &url]);
    run_command(std::mem::replace(cancelled.env("POSTRIDER_OPERATOR", "Grace"), command(&[]))).await.ok();
    assert_eq!(status(&database, id).await, "cancelled");

    run(&["deliveries", "retry", &id.to_string(), "--database-url", &url]).await.ok();
    let login = std::process::Command::new("id").arg("-un").output().unwrap().stdout;
    let login = String::from_utf8(login).unwrap().trim().to_owned();
    let by = |kind: &str, name: &str| (kind.to_owned(), id.to_string(), name.to_owned());
    let expected = [by("delivery_retried", "Ada"), by("delivery_cancelled", "Grace"), by("delivery_retried", &login)];
    assert_eq!(recorded(&database).await, expected);
}

#[tokio::test]
async fn cancelling_an_attempt_under_way_says_that_it_may_still_arrive() {
    let database = support::database().await;
    let id = waiting(&database).await;
    let claim = "update postrider.deliveries set claim_token = gen_random_uuid(), due_at = now() + interval '1 minute'";
    execute(&database, claim).await;
    let cancelled = run(&["deliveries", "cancel", &id.to_string(), "--database-url", &database.url()]).await;
    assert!(cancelled.stderr.contains("may still reach the receiver"), "{cancelled:?}");
    assert_eq!(status(&database, id).await, "cancelled");
}

#[tokio::test]
async fn what_third_parties_named_cannot_steer_a_terminal() {
    let database = support::database().await;
    let id: Uuid = waiting(&database).await;
    execute(&database, "update postrider.deliveries set owner = E'\\x1b]0;owned\\x07'").await;
    let url = database.url();
    for arguments in [vec!["deliveries", "list"], vec!["deliveries", "show", &id.to_string()]] {
        let text = run(&[&arguments[..], &["--database-url", &url]].concat()).await.ok();
        assert!(text.contains("\\u{1b}]0;owned\\u{7}") && !text.contains('\u{1b}'), "{text}");
    }
}
