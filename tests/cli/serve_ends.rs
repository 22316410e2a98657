//! How `postrider serve` ends.

use std::time::{Duration, Instant};

use crate::program::{PATIENCE, Scratch};
use crate::receiver::{Step, http};
use crate::support::{self, eventually};
use crate::world::{Receiving, sign_out, status};

/// An answer that takes some seconds, and less than a send may take.
fn slow_answer() -> Vec<Step> {
    let answer = http("200 OK", &["content-length: 0"], "");
    let apart = Duration::from_secs(3) / u32::try_from(answer.len()).unwrap();
    vec![Step::Trickle(answer, apart)]
}

#[tokio::test]
async fn sigterm_lets_attempts_finish_and_records_them() {
    for signal in ["TERM", "INT"] {
        let (scratch, database) = (Scratch::new(), support::database().await);
        let receiving = Receiving::answering(&scratch, slow_answer()).await;
        let mut serve = receiving.serve(&scratch, &["--database-url", &database.url()]).await;
        let id = sign_out(&mut database.connect().await, &receiving.uri()).await;
        eventually(PATIENCE, "the receiver has it", async || receiving.claims().len() == 1).await;

        let started = Instant::now();
        serve.signal(signal);
        eventually(PATIENCE, "not ready", async || {
            let (code, _, body) = serve.get("/health/ready").await;
            code == 503 && body.contains("draining")
        })
        .await;
        assert_eq!(serve.get("/health/live").await.0, 200);
        let exit = serve.ended().await;
        assert_eq!(exit.code(), Some(0), "{}", serve.stderr());
        assert!(started.elapsed() < Duration::from_secs(15), "beyond the shutdown deadline");
        assert_eq!(status(&database, id).await, "succeeded");
        assert!(serve.try_get("/health/live").await.is_none());
    }
}

#[tokio::test]
async fn attempts_that_outlast_the_shutdown_deadline_are_aborted_and_stay_pending() {
    let (scratch, database) = (Scratch::new(), support::database().await);
    let receiving = Receiving::answering(&scratch, vec![Step::AwaitClose]).await;
    let url = database.url();
    let quick = ["--database-url", &url, "--send-timeout", "2s", "--shutdown-deadline", "2s"];
    let mut serve = receiving.serve(&scratch, &quick).await;
    let id = sign_out(&mut database.connect().await, &receiving.uri()).await;
    eventually(PATIENCE, "the receiver has it", async || receiving.claims().len() == 1).await;
    let started = Instant::now();
    serve.signal("TERM");
    assert_eq!(serve.ended().await.code(), Some(0), "{}", serve.stderr());
    assert!(started.elapsed() < Duration::from_secs(8), "not bounded");
    assert_eq!(status(&database, id).await, "pending");
}

#[tokio::test]
async fn a_second_signal_ends_it_at_once() {
    let (scratch, database) = (Scratch::new(), support::database().await);
    let receiving = Receiving::answering(&scratch, vec![Step::AwaitClose]).await;
    let mut serve = receiving.serve(&scratch, &["--database-url", &database.url()]).await;
    let id = sign_out(&mut database.connect().await, &receiving.uri()).await;
    eventually(PATIENCE, "the receiver has it", async || receiving.claims().len() == 1).await;
    serve.signal("TERM");
    eventually(PATIENCE, "draining", async || serve.get("/health/ready").await.0 == 503).await;
    let started = Instant::now();
    serve.signal("TERM");
    assert_eq!(serve.ended().await.code(), Some(130), "{}", serve.stderr());
    assert!(started.elapsed() < Duration::from_secs(3), "not at once");
    assert_eq!(status(&database, id).await, "pending");
}

#[tokio::test]
async fn a_database_that_is_away_does_not_hold_up_the_end() {
    let scratch = Scratch::new();
    let database = support::database().await;
    let receiving = Receiving::content(&scratch).await;
    let mut serve = receiving.serve(&scratch, &["--database-url", &database.url()]).await;
    database.close().await;
    let started = Instant::now();
    serve.signal("TERM");
    assert_eq!(serve.ended().await.code(), Some(0), "{}", serve.stderr());
    assert!(started.elapsed() < Duration::from_secs(20), "not bounded");
}
