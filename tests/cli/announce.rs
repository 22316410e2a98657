//! `postrider announce`.

use crate::program::{Scratch, command, run, run_command};
use crate::support::{self, TestDatabase};

/// Accounts `user1` and so on: the first without address, the second opted out.
async fn accounts(database: &TestDatabase, many: i64) {
    for statement in [
        "insert into postrider_identity.accounts (id, handle)
         select gen_random_uuid(), 'user' || n from generate_series(1, $1) n",
        "insert into postrider_identity.email_addresses (id, account_id, address, is_primary, verified_at)
         select gen_random_uuid(), a.id, a.handle || '@many.example', true, now()
           from postrider_identity.accounts a where a.handle <> 'user1' and $1 > 0",
        "insert into postrider_identity.email_preferences (account_id, announcements)
         select a.id, false from postrider_identity.accounts a where a.handle = 'user2' and $1 > 0",
    ] {
        sqlx::query(statement).bind(many).execute(database.pool()).await.unwrap();
    }
}

async fn count(database: &TestDatabase, what: &'static str) -> i64 {
    sqlx::query_scalar(what).fetch_one(database.pool()).await.unwrap()
}

const DELIVERIES: &str = "select count(*) from postrider.deliveries where channel = 'announcement'";
const INBOXES: &str = "select count(*) from postrider_identity.notifications where kind = 'announcement'";
const ANNOUNCEMENTS: &str = "select count(*) from postrider_identity.announcements";

#[tokio::test]
async fn it_reaches_every_account_and_a_dry_run_says_whom_and_writes_nothing() {
    let (scratch, database) = (Scratch::new(), support::database().await);
    accounts(&database, 4500).await;
    let text = scratch.arg("text");
    std::fs::write(&text, "We move on Saturday.\n\nNobody need do anything.\n").unwrap();
    let url = database.url();
    let announce = ["announce", "--database-url", &url, "--subject", "We move", "--text-file", &text, "--by", "root"];
    let reach = "4500 inboxes, 4498 of them by e-mail; 1 opted out, 1 have no address\n";

    let dry = run(&[&announce[..], &["--dry-run"]].concat()).await.ok();
    assert_eq!(dry, format!("would reach {reach}"));
    assert_eq!((count(&database, ANNOUNCEMENTS).await, count(&database, DELIVERIES).await), (0, 0));

    let done = run(&announce).await;
    let progress = done.stderr.clone();
    let told = done.ok();
    assert!(told.ends_with(&format!(" reaches {reach}")), "{told}");
    assert!(progress.contains("4498 of 4498 e-mails recorded") && !progress.contains("WARN"), "{progress}");
    assert_eq!((count(&database, INBOXES).await, count(&database, DELIVERIES).await), (4500, 4498));
    let written: (String, String, bool, String) =
        sqlx::query_as("select subject, text, essential, created_by from postrider_identity.announcements")
            .fetch_one(database.pool())
            .await
            .unwrap();
    let text = "We move on Saturday.\n\nNobody need do anything.".to_owned();
    assert_eq!(written, ("We move".to_owned(), text, false, "root".to_owned()));

    let essential = run(&[&announce[..], &["--essential"]].concat()).await.ok();
    assert!(essential.ends_with("4499 of them by e-mail; 0 opted out, 1 have no address\n"), "{essential}");
}

#[tokio::test]
async fn what_cannot_be_announced_is_refused_and_nothing_is_written() {
    let (scratch, database) = (Scratch::new(), support::database().await);
    accounts(&database, 3).await;
    let (text, not_text, empty) = (scratch.arg("text"), scratch.arg("not-text"), scratch.arg("empty"));
    std::fs::write(&text, "Text.").unwrap();
    std::fs::write(&not_text, b"Te\xff").unwrap();
    std::fs::write(&empty, "\n").unwrap();
    let url = database.url();
    for (subject, file, words) in [
        ("", text.as_str(), ["--subject", "announcement needs a subject"]),
        ("a\r\nBcc: v@e.example", &text, ["--subject", "in one line"]),
        (&"x".repeat(201), &text, ["--subject", "200"]),
        ("News", &empty, ["--text-file", "text"]),
        ("News", &not_text, ["not UTF-8", "byte 3"]),
        ("News", &scratch.arg("absent"), ["--text-file", "absent"]),
    ] {
        let announce = ["announce", "--database-url", &url, "--subject", subject, "--text-file", file, "--by", "root"];
        run(&announce).await.failed(2, &words);
    }
    assert_eq!((count(&database, ANNOUNCEMENTS).await, count(&database, DELIVERIES).await), (0, 0));
}

/// From a pipe, as scripts do.
#[tokio::test]
async fn the_text_may_come_from_stdin() {
    let (scratch, database) = (Scratch::new(), support::database().await);
    accounts(&database, 3).await;
    let file = scratch.path("text");
    std::fs::write(&file, "Piped.").unwrap();
    let url = database.url();
    let mut announce =
        command(&["announce", "--database-url", &url, "--subject", "News", "--text-file", "-", "--by", "root"]);
    announce.stdin(std::fs::File::open(&file).unwrap());
    run_command(announce).await.ok();
    let text: String = sqlx::query_scalar("select text from postrider_identity.announcements")
        .fetch_one(database.pool())
        .await
        .unwrap();
    assert_eq!(text, "Piped.");
}
