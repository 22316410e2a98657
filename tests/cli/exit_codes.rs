//! Each exit code, and that a failed command prints nothing on stdout.

use std::process::Stdio;
use std::time::{Duration, Instant};

use tokio::net::TcpListener;

use crate::program::{Scratch, command, key, run, run_command, signal};
use crate::{support, world};

const ABSENT: &str = "0190b5a4-8c7e-7c3a-9d52-3f1e6a7b8c9d";

#[tokio::test]
async fn exit_0_says_what_it_was_asked_for_on_stdout() {
    assert!(run(&["--help"]).await.ok().contains("Exit codes"));
    assert!(run(&["--version"]).await.ok().starts_with("postrider 0."));
    let database = support::database().await;
    run(&["deliveries", "list", "--database-url", &database.url()]).await.ok();
}

#[tokio::test]
async fn exit_1_is_a_failure_of_its_own() {
    let scratch = Scratch::new();
    run(&["keys", "generate", &scratch.arg("no/such/folder")])
        .await
        .failed(1, &["no/such/folder", "cannot be written"]);
}

#[tokio::test]
async fn exit_2_is_what_is_wrong_with_arguments_and_settings() {
    run(&["deliver"]).await.failed(2, &["deliver"]);
    run(&[]).await.failed(2, &["Usage"]);
    for command in [["deliveries", "show", "12"], ["deliveries", "retry", "x"], ["deliveries", "cancel", ""]] {
        run(&command).await.failed(2, &["is not a delivery id", "a UUID such as"]);
    }
    run(&["deliveries", "list", "--status", "done"]).await.failed(2, &["--status", "pending, succeeded, failed or"]);
    run(&["deliveries", "list", "--limit", "0"]).await.failed(2, &["--limit"]);
    run(&["deliveries", "list", "--log", "a=b=c"]).await.failed(2, &["--log (POSTRIDER_LOG)"]);
    let database = support::database().await;
    let by_nobody = ["deliveries", "retry", ABSENT, "--by", "", "--database-url", &database.url()];
    run(&by_nobody).await.failed(2, &["--by (POSTRIDER_OPERATOR)"]);
}

#[tokio::test]
async fn exit_3_is_a_delivery_that_is_not_there() {
    let database = support::database().await;
    for command in ["show", "retry", "cancel"] {
        let done = run(&["deliveries", command, ABSENT, "--database-url", &database.url()]).await;
        done.failed(3, &["there is no delivery", ABSENT]);
    }
}

#[tokio::test]
async fn exit_5_is_a_status_that_does_not_allow_it() {
    let database = support::database().await;
    let delivery = world::waiting(&database).await;
    let id = delivery.to_string();
    let retried = run(&["deliveries", "retry", &id, "--database-url", &database.url()]).await;
    retried.failed(5, &["is pending", "cannot be retried"]);
    let done = "update postrider.deliveries set status = 'succeeded'";
    sqlx::query(done).execute(database.pool()).await.unwrap();
    let cancelled = run(&["deliveries", "cancel", &id, "--database-url", &database.url()]).await;
    cancelled.failed(5, &["is succeeded", "cannot be cancelled"]);
    assert_eq!(world::status(&database, delivery).await, "succeeded");
}

#[tokio::test]
async fn exit_7_is_a_database_out_of_reach_within_a_bounded_time_and_no_password_is_told() {
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let mute = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let scratch = Scratch::new();
    let key = key(&scratch).await;
    let serve = ["serve", "--issuer", "https://id.example", "--signing-key", &key, "--listen", "127.0.0.1:0"];
    for address in [closed, mute.local_addr().unwrap()] {
        let url = format!("postgresql://someone:hunter2@{address}/somewhere");
        for words in [&["migrate"][..], &["deliveries", "list"], &["deliveries", "show", ABSENT], &serve] {
            let mut asked = command(words);
            asked.env("DATABASE_URL", &url).args(["--database-timeout", "500ms", "--log", "trace"]);
            let started = Instant::now();
            let done = run_command(asked).await;
            let shown = format!("database somewhere on 127.0.0.1:{} as someone", address.port());
            let done = done.failed(7, &["cannot connect to the", &shown, "because", "next"]);
            assert!(!done.stderr.contains("hunter2"), "{}", done.stderr);
            assert!(started.elapsed() < Duration::from_secs(10), "not bounded");
        }
    }
}

#[tokio::test]
async fn exit_130_is_an_interrupted_command() {
    for name in ["INT", "TERM"] {
        let mute = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("postgresql://someone@{}/somewhere", mute.local_addr().unwrap());
        let mut asked = command(&["migrate", "--database-url", &url, "--database-timeout", "1h"]);
        let child = asked.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // It has connected, so it listens for signals.
        let _connected = mute.accept().await.unwrap();
        signal(child.id().unwrap(), name);
        let output = child.wait_with_output().await.unwrap();
        assert_eq!(output.status.code(), Some(130));
        assert!(output.stdout.is_empty());
        assert_eq!(String::from_utf8(output.stderr).unwrap(), "error: interrupted\n");
    }
}
