//! Without DATABASE_URL: a private PostgreSQL in a folder of its own.

use std::path::Path;

use postrider::private_postgres::{Found, look};
use sqlx::{ConnectOptions, PgConnection};
use uuid::Uuid;

use crate::program::{PATIENCE, Scratch, run, signal};
use crate::support::eventually;
use crate::world::{Receiving, sign_out};

async fn connect(data: &Path) -> PgConnection {
    let Found::Running(attached) = look(data).unwrap() else { panic!("it does not run") };
    attached.connect_options("postrider").connect().await.unwrap()
}

async fn is_listed(data: &str, id: Uuid, status: &str) -> bool {
    let listed = run(&["deliveries", "list", "--json", "--data", data]).await.json();
    listed.as_array().unwrap().iter().any(|one| one["id"] == id.to_string() && one["status"] == status)
}

#[tokio::test]
async fn it_is_made_migrated_and_kept_across_runs_and_kills() {
    let scratch = Scratch::new();
    let (data, folder) = (scratch.arg("data"), scratch.path("data"));
    let receiving = Receiving::content(&scratch).await;
    let serve = receiving.serve(&scratch, &["--data", &data]).await;
    assert!(serve.stderr().contains("look into it with: psql -h"), "{}", serve.stderr());
    let first = sign_out(&mut connect(&folder).await, &receiving.uri()).await;
    // While it runs, commands attach to it.
    eventually(PATIENCE, "delivered", async || is_listed(&data, first, "succeeded").await).await;
    serve.terminate().await;
    assert_eq!(look(&folder).unwrap(), Found::Stopped);

    // While it does not, they start it for themselves, and end it.
    assert!(is_listed(&data, first, "succeeded").await);
    assert_eq!(look(&folder).unwrap(), Found::Stopped);
    run(&["migrate", "--data", &data]).await.ok();

    let serve = receiving.serve(&scratch, &["--data", &data]).await;
    let second = sign_out(&mut connect(&folder).await, &receiving.uri()).await;
    serve.kill().await;

    let serve = receiving.serve(&scratch, &["--data", &data]).await;
    eventually(PATIENCE, "delivered after the kill", async || is_listed(&data, second, "succeeded").await).await;
    assert!(is_listed(&data, first, "succeeded").await);
    let taken = ["serve", "--data", &data, "--issuer", "https://id.example", "--signing-key", &scratch.arg("key.pem")];
    let taken = [&taken[..], &["--listen", "127.0.0.1:0"]].concat();
    run(&taken).await.failed(1, &["in use by pid", "next:"]);
    serve.terminate().await;
}

#[tokio::test]
async fn its_end_ends_serve_with_the_reason() {
    let scratch = Scratch::new();
    let (data, folder) = (scratch.arg("data"), scratch.path("data"));
    let receiving = Receiving::content(&scratch).await;
    let mut serve = receiving.serve(&scratch, &["--data", &data]).await;
    let pid_file = std::fs::read_to_string(folder.join("pg/postmaster.pid")).unwrap();
    signal(pid_file.lines().next().unwrap().parse().unwrap(), "KILL");
    assert_eq!(serve.ended().await.code(), Some(1), "{}", serve.stderr());
    let stderr = serve.stderr();
    assert!(stderr.contains("postrider ended by itself") && stderr.contains("PostgreSQL ended by itself"), "{stderr}");
    assert!(!serve.address().is_empty());
}

#[tokio::test]
async fn only_serve_makes_one_and_a_foreign_folder_is_left_alone() {
    let scratch = Scratch::new();
    let absent = scratch.arg("absent");
    for command in [&["migrate"][..], &["deliveries", "list"]] {
        let done = run(&[command, &["--data", &absent]].concat()).await;
        done.failed(2, &["DATABASE_URL is not set", &absent, "holds no private PostgreSQL"]);
    }
    assert!(!scratch.path("absent").exists());

    std::fs::create_dir(scratch.path("mine")).unwrap();
    std::fs::write(scratch.path("mine/thesis.txt"), "years of work").unwrap();
    let (mine, key) = (scratch.arg("mine"), crate::program::key(&scratch).await);
    let serve = ["serve", "--issuer", "https://id.example", "--signing-key", &key, "--listen", "127.0.0.1:0"];
    let done = run(&[&serve[..], &["--data", &mine]].concat()).await;
    done.failed(2, &["was not made by Postrider", "--data"]);
    run(&["deliveries", "list", "--data", &mine]).await.failed(2, &["holds no private PostgreSQL"]);

    let old = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/postgres-13");
    let done = run(&[&serve[..], &["--data", &absent, "--pg-bin", old]].concat()).await;
    done.failed(2, &["PostgreSQL 14 or newer is needed", "13.4"]);
    assert!(!scratch.path("absent").exists());
}
