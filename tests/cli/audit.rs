//! `postrider audit`, and what an operator reads who comes too late.

use std::collections::BTreeSet;
use std::process::Stdio;

use sqlx::AssertSqlSafe;

use crate::program::{PATIENCE, command, run};
use crate::support::{self, TestDatabase, eventually};
use crate::world::{status, waiting};

async fn execute(database: &TestDatabase, statement: &str) {
    sqlx::raw_sql(AssertSqlSafe(statement.to_owned())).execute(database.pool()).await.unwrap();
}

const LATE: &str =
    "update postrider.deliveries set due_at = now() - interval '90 seconds', ready_at = now() - interval '90 seconds'";

#[tokio::test]
async fn exit_0_and_an_empty_stdout_where_nothing_is_found() {
    let database = support::database().await;
    waiting(&database).await;
    let done = run(&["audit", "--database-url", &database.url()]).await;
    assert_eq!(done.stderr, "nothing found\n");
    assert_eq!(done.ok(), "");
    let json = run(&["audit", "--json", "--database-url", &database.url()]).await.json();
    assert_eq!(json["findings"], serde_json::json!([]));
}

#[tokio::test]
async fn exit_8_names_what_was_found_and_says_what_to_do() {
    let database = support::database().await;
    let id = waiting(&database).await;
    execute(&database, LATE).await;
    let done = run(&["audit", "--database-url", &database.url()]).await;
    assert_eq!(done.code, Some(8), "{done:?}");
    for words in ["overdue: 1 of backchannel_logout\n", "  means: due, ", "  next: Look at "] {
        assert!(done.stdout.contains(words), "{}", done.stdout);
    }
    assert!(done.stdout.contains(&format!("  such as: {id}\n")), "{}", done.stdout);
    // The same is not late to who has more patience.
    run(&["audit", "--older-than", "5m", "--database-url", &database.url()]).await.ok();
    run(&["audit", "--older-than", "5", "--database-url", &database.url()]).await.failed(2, &["--older-than"]);
    run(&["audit", "--limit", "0", "--database-url", &database.url()]).await.failed(2, &["--limit"]);
}

#[tokio::test]
async fn an_audit_tells_ids_and_nothing_of_whom_or_where() {
    let database = support::database().await;
    waiting(&database).await;
    execute(
        &database,
        "update postrider.deliveries set owner = 's3cret', destination = 's3cret', ordering_key = 's3cret', ordinal = 1,
                payload = '\"s3cret\"'",
    )
    .await;
    for arguments in [vec!["audit"], vec!["audit", "--json"]] {
        let done = run(&[&arguments[..], &["--database-url", &database.url()]].concat()).await;
        assert_eq!(done.code, Some(8), "{done:?}");
        assert!(done.stdout.contains("key_missing"), "{done:?}");
        assert!(!format!("{done:?}").contains("s3cret"), "{done:?}");
    }
}

#[tokio::test]
async fn a_part_is_called_a_part() {
    let database = support::database().await;
    for _ in 0..3 {
        waiting(&database).await;
    }
    execute(&database, LATE).await;
    let done = run(&["audit", "--limit", "2", "--database-url", &database.url()]).await;
    assert!(done.stdout.starts_with("overdue: 2+ of backchannel_logout\n"), "{}", done.stdout);
    let part = "looked at the first 2 deliveries past their time of backchannel_logout only; --limit sets how many";
    assert!(done.stderr.contains(part), "{}", done.stderr);
}

#[tokio::test]
async fn its_json_has_the_documented_fields_and_kinds() {
    let database = support::database().await;
    let id = waiting(&database).await;
    execute(&database, LATE).await;
    let done = run(&["audit", "--json", "--database-url", &database.url()]).await;
    assert_eq!(done.code, Some(8), "{done:?}");
    let json: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
    let fields = |of: &serde_json::Value| of.as_object().unwrap().keys().cloned().collect::<BTreeSet<_>>();
    let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
    assert_eq!(fields(&json), set(&["at", "findings", "looked"]));
    let finding = &json["findings"][0];
    let known = ["kind", "channel", "found", "more", "examples", "rules", "meaning", "next"];
    assert_eq!(fields(finding), set(&known));
    assert_eq!(fields(&json["looked"][0]), set(&["at", "channel", "count", "part"]));
    assert_eq!((&finding["kind"], &finding["examples"][0]), (&"overdue".into(), &id.to_string().into()));
    let docs = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/cli.md")).unwrap();
    let kinds = postrider::actors::FindingKind::ALL.map(|kind| kind.as_str());
    for word in known.iter().chain(&kinds) {
        assert!(docs.contains(&format!("`{word}`")), "docs/cli.md lacks {word}");
    }
}

#[tokio::test]
async fn exit_7_is_an_audit_without_a_database() {
    let nobody = "postgresql://someone@127.0.0.1:1/somewhere";
    run(&["audit", "--database-url", nobody]).await.failed(7, &["cannot connect"]);
    let database = support::empty_database().await;
    run(&["audit", "--database-url", &database.url()]).await.failed(2, &["postrider migrate"]);
}

/// Cleanup has the failure first and is abandoning its key: the operator waits for it and then finds the failure gone.
#[tokio::test]
async fn who_retries_or_cancels_a_failure_that_is_being_abandoned_finds_it_gone() {
    for wish in ["retry", "cancel"] {
        let database = support::database().await;
        let id = waiting(&database).await;
        execute(&database, "update postrider.deliveries set status = 'failed'").await;
        let mut cleanup = database.pool().begin().await.unwrap();
        sqlx::query("delete from postrider.deliveries").execute(&mut *cleanup).await.unwrap();
        let mut late = command(&["deliveries", wish, &id.to_string(), "--database-url", &database.url()]);
        let late = late.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        eventually(PATIENCE, "the operator waits", async || {
            let waits = "select exists (select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock')";
            sqlx::query_scalar(waits).fetch_one(database.pool()).await.unwrap()
        })
        .await;
        assert_eq!(status(&database, id).await, "failed");
        cleanup.commit().await.unwrap();
        let output = late.wait_with_output().await.unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(3), "{stderr}");
        assert!(stderr.contains(&format!("there is no delivery {id}")), "{stderr}");
    }
}
