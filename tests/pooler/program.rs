//! The program refuses too, with exit code 2 and what to set instead.

use std::time::Duration;

use tokio::process::Command;

use crate::bouncer::{Bouncer, Mode, Settings};
use crate::support;

/// Returns its exit code and what it said on stderr.
async fn run(arguments: &[&str], url: &str) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_postrider"));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("POSTRIDER_") || name.starts_with("PG")) {
        command.env_remove(name);
    }
    command.env("DATABASE_URL", url).args(arguments).stdin(std::process::Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(Duration::from_secs(60), command.output()).await.expect("it ended").unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c41_every_command_refuses_a_transaction_pool_and_says_what_to_set() {
    let database = support::empty_database().await;
    let key = std::env::temp_dir().join(format!("postrider-pooler-{}.pem", uuid::Uuid::new_v4().simple()));
    let file = key.to_str().unwrap();
    assert_eq!(run(&["keys", "generate", file], "").await.0, Some(0));
    let serve = ["serve", "--issuer", "https://id.example", "--signing-key", file, "--listen", "127.0.0.1:0"];
    let id = uuid::Uuid::new_v4().to_string();
    for mode in [Mode::Transaction, Mode::Statement] {
        let bouncer = Bouncer::start(&database, &Settings::new(mode, 2)).await;
        for command in [
            &["migrate"][..],
            &["deliveries", "list"],
            &["deliveries", "retry", &id, "--by", "a test"],
            &serve,
            &[&serve[..], &["--migrate"]].concat(),
            &["demo"],
        ] {
            let (code, stderr) = run(command, &bouncer.url(&database)).await;
            assert_eq!(code, Some(2), "{command:?}: {stderr}");
            for word in ["DATABASE_URL", "pool_mode = session", "transaction or statement mode"] {
                assert!(stderr.contains(word), "{word:?} is missing in {stderr}");
            }
        }
    }
    std::fs::remove_file(key).unwrap();
    let schema = sqlx::query_scalar("select to_regnamespace('postrider') is not null");
    let migrated: bool = schema.fetch_one(database.pool()).await.unwrap();
    assert!(!migrated, "nothing was changed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_start_up_parameter_is_told_and_nothing_else_of_the_url() {
    let database = support::database().await;
    let bouncer = Bouncer::start(&database, &Settings::new(Mode::Session, 5)).await;
    let url = format!("{}&options[search_path]=hunter2", bouncer.url(&database));
    let (code, stderr) = run(&["deliveries", "list"], &url).await;
    assert_eq!(code, Some(2), "{stderr}");
    assert!(stderr.contains("start-up parameter \"options\"") && stderr.contains("DATABASE_URL"), "{stderr}");
    assert!(!stderr.contains("hunter2"), "{stderr}");
    let (code, stderr) = run(&["deliveries", "list"], &bouncer.url(&database)).await;
    assert_eq!(code, Some(0), "{stderr}");
}
