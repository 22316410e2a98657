//! `postrider serve` delivers, and says so over HTTP.

use std::time::Duration;

use serde_json::Value;

use crate::program::{PATIENCE, Scratch, run};
use crate::receiver::Step;
use crate::support::{self, eventually};
use crate::world::{ISSUER, Receiving, sign_out, status};

#[tokio::test]
async fn it_delivers_and_publishes_keys_metrics_and_health() {
    let (scratch, database) = (Scratch::new(), support::database().await);
    let receiving = Receiving::content(&scratch).await;
    let serve = receiving.serve(&scratch, &["--database-url", &database.url()]).await;

    let (code, head, body) = serve.get("/jwks.json").await;
    assert_eq!(code, 200);
    assert!(head.contains("cache-control: public, max-age=300") && head.contains("application/jwk-set+json"), "{head}");
    let published = run(&["keys", "jwks", &scratch.arg("key.pem")]).await.json();
    assert_eq!(serde_json::from_str::<Value>(&body).unwrap(), published);
    assert!(serve.stderr().contains(published["keys"][0]["kid"].as_str().unwrap()));

    let id = sign_out(&mut database.connect().await, &receiving.uri()).await;
    eventually(PATIENCE, "the delivery succeeded", async || status(&database, id).await == "succeeded").await;
    let claims = &receiving.claims()[0];
    assert_eq!(claims["jti"], id.to_string());
    assert_eq!(claims["iss"], ISSUER, "byte for byte");
    eventually(PATIENCE, "the attempt is counted", async || {
        let (code, head, body) = serve.get("/metrics").await;
        assert!(code == 200 && head.contains("text/plain; version=0.0.4"), "{head}");
        assert!(!body.contains("NaN") && !body.contains("127.0.0.1"), "{body}");
        let gauge = body.contains("postrider_deliveries_pending{channel=\"backchannel_logout\"} ");
        let succeeded = "postrider_deliveries_attempts_total{channel=\"backchannel_logout\",outcome=\"succeeded\"} 1\n";
        gauge && body.contains(succeeded)
    })
    .await;

    assert_eq!(serve.get("/health/live").await.0, 200);
    assert_eq!(serve.get("/health/ready").await.0, 200);
    assert_eq!(serve.get("/nowhere").await.0, 404);
    serve.terminate().await;
}

#[tokio::test]
async fn no_log_however_loud_tells_where_a_delivery_goes_or_what_it_holds() {
    let (scratch, database) = (Scratch::new(), support::database().await);
    let receiving = Receiving::content(&scratch).await;
    let serve = receiving.serve(&scratch, &["--database-url", &database.url(), "--log", "trace"]).await;
    let secret = format!("{}/s3cret-path?code=s3cret-query", receiving.uri());
    let refused = "https://127.0.0.1:1/s3cret-path";
    for uri in [secret.as_str(), refused] {
        sign_out(&mut database.connect().await, uri).await;
    }
    eventually(PATIENCE, "both are attempted", async || {
        let attempted =
            "select count(*) from postrider.deliveries where status = 'succeeded' or last_error is not null";
        sqlx::query_scalar::<_, i64>(attempted).fetch_one(database.pool()).await.unwrap() == 2
    })
    .await;
    let token = receiving.receiver.seen()[0].request.split_once("logout_token=").unwrap().1.to_owned();
    let log = serve.terminate().await;
    assert!(log.contains("TRACE"), "not loud");
    for secret in ["s3cret", token.trim(), "client-"] {
        assert!(!log.contains(secret), "{secret} in {log}");
    }
}

#[tokio::test]
async fn the_health_of_every_actor_is_told() {
    let (scratch, database) = (Scratch::new(), support::database().await);
    let receiving = Receiving::content(&scratch).await;
    let serve = receiving.serve(&scratch, &["--database-url", &database.url()]).await;
    let report = async || -> Value { serde_json::from_str(&serve.get("/health/actors").await.2).unwrap() };
    eventually(PATIENCE, "all is well", async || {
        let report = report().await;
        let running = |one: &Value| one["state"] == "running";
        report["actors"].as_array().unwrap().iter().all(running)
            && report["channels"].as_array().unwrap().iter().all(|one| running(one) && one["pending"] == 0)
            && report["hears_other_processes"] == true
    })
    .await;
    let report = report().await;
    let names: Vec<&str> =
        report["actors"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    for name in ["supervisor", "backchannel_logout/claimer", "backchannel_logout/sender 1", "cleanup", "gauge"] {
        assert!(names.contains(&name), "{names:?}");
    }
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(" ");
    assert_eq!(
        keys(&report["actors"][0]),
        "channel in_flight last_restart mailbox_depth name restarts since_progress_seconds state"
    );
    assert_eq!(keys(&report["channels"][0]), "name oldest_pending_age_seconds pending state");
    serve.terminate().await;
}

#[tokio::test]
async fn it_is_not_ready_while_the_database_is_out_of_reach_and_ready_again_after() {
    let (scratch, database) = (Scratch::new(), support::database().await);
    let receiving = Receiving::content(&scratch).await;
    let serve = receiving.serve(&scratch, &["--database-url", &database.url(), "--poll-interval", "100ms"]).await;
    eventually(PATIENCE, "ready", async || serve.get("/health/ready").await.0 == 200).await;
    set_reachable(&database, false).await;
    eventually(PATIENCE, "not ready", async || {
        let (code, _, body) = serve.get("/health/ready").await;
        code == 503 && body == "database unreachable\n"
    })
    .await;
    assert_eq!(serve.get("/health/live").await.0, 200, "a restart would not mend the database");
    set_reachable(&database, true).await;
    eventually(PATIENCE, "ready again", async || serve.get("/health/ready").await.0 == 200).await;
    let id = sign_out(&mut database.connect().await, &receiving.uri()).await;
    eventually(PATIENCE, "it delivers again", async || status(&database, id).await == "succeeded").await;
    serve.terminate().await;
}

async fn set_reachable(database: &support::TestDatabase, reachable: bool) {
    use sqlx::ConnectOptions;
    let mut elsewhere = database.options().database("postgres").connect().await.unwrap();
    let allow = format!("alter database {} with allow_connections {reachable}", database.name());
    sqlx::query(sqlx::AssertSqlSafe(allow)).execute(&mut elsewhere).await.unwrap();
    if !reachable {
        let end = "select pg_terminate_backend(pid) from pg_stat_activity where datname = $1";
        sqlx::query(end).bind(database.name()).execute(&mut elsewhere).await.unwrap();
    }
}

#[tokio::test]
async fn killed_in_the_middle_of_a_send_it_sends_again_under_the_same_jti() {
    let (scratch, database) = (Scratch::new(), support::database().await);
    let receiving = Receiving::answering(&scratch, vec![Step::AwaitClose]).await;
    let url = database.url();
    let quick = ["--lease", "4s", "--send-timeout", "1s", "--recording-margin", "2s", "--queue-timeout", "2s"];
    let arguments = [&["--database-url", &url][..], &quick].concat();
    let serve = receiving.serve(&scratch, &arguments).await;
    let id = sign_out(&mut database.connect().await, &receiving.uri()).await;
    eventually(PATIENCE, "the receiver has it", async || receiving.claims().len() == 1).await;
    serve.kill().await;
    assert_eq!(status(&database, id).await, "pending");

    let serve = receiving.serve(&scratch, &arguments).await;
    eventually(Duration::from_secs(15), "it arrives again", async || receiving.claims().len() >= 2).await;
    let claims = receiving.claims();
    assert_eq!([&claims[0]["jti"], &claims[1]["jti"]], [&id.to_string(), &id.to_string()]);
    assert_ne!(claims[0]["iat"], claims[1]["iat"], "signed for each attempt");
    serve.terminate().await;
}
