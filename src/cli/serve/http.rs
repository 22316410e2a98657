//! Keys, metrics and health over HTTP.

use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::health::Readiness;
use crate::cli::failure::{Exit, Failure};
use crate::unsubscribe::Unsubscribe;

/// How long receivers may use a key set before they ask again; a new key waits as long before it signs.
const KEY_SET_LIFETIME: &str = "public, max-age=300";
/// How often what the recorder has gathered is put in order.
const UPKEEP: Duration = Duration::from_secs(5);
/// How long answers under way may take once all else has ended.
const LAST_ANSWERS: Duration = Duration::from_secs(2);

/// Makes this process's metrics go where /metrics reads them.
pub(super) fn install_metrics() -> Result<PrometheusHandle, Failure> {
    let recorder = PrometheusBuilder::new().build_recorder();
    let handle = recorder.handle();
    metrics::set_global_recorder(recorder)
        .map_err(|error| Failure::new(Exit::Failed, "metrics cannot be recorded").because(&error))?;
    Ok(handle)
}

/// The server and its tasks.
pub(super) struct Server {
    tasks: TaskTracker,
    /// Asks the tasks to end.
    end: CancellationToken,
    /// The server has ended, asked or not.
    ended: CancellationToken,
}

/// What is served beside health.
pub(super) struct Pages {
    pub(super) jwks: String,
    pub(super) metrics: PrometheusHandle,
    /// Where e-mail is sent.
    pub(super) unsubscribe: Option<Unsubscribe>,
}

#[derive(Clone)]
struct Shared {
    jwks: String,
    metrics: PrometheusHandle,
    readiness: Readiness,
}

impl Server {
    pub(super) fn start(listener: TcpListener, pages: Pages, readiness: Readiness) -> Self {
        let Pages { jwks, metrics, unsubscribe } = pages;
        let (tasks, end, ended) = (TaskTracker::new(), CancellationToken::new(), CancellationToken::new());
        tasks.spawn(keep_up(metrics.clone(), end.clone()));
        let router = router(Shared { jwks, metrics, readiness });
        let router = match unsubscribe {
            Some(unsubscribe) => router.nest("/unsubscribe", crate::unsubscribe::router(unsubscribe)),
            None => router,
        };
        let serving = axum::serve(listener, router).with_graceful_shutdown(end.clone().cancelled_owned());
        let says_so = ended.clone().drop_guard();
        tasks.spawn(async move {
            let _says_so = says_so;
            if let Err(error) = serving.await {
                tracing::error!(%error, "HTTP is served no more");
            }
        });
        tasks.close();
        Self { tasks, end, ended }
    }

    /// Waits for its end.
    pub(super) async fn ended(&self) {
        self.ended.cancelled().await;
    }

    /// Takes no more requests, and lets those under way be answered for a moment.
    pub(super) async fn stop(&self) {
        self.end.cancel();
        let _ = tokio::time::timeout(LAST_ANSWERS, self.tasks.wait()).await;
    }
}

async fn keep_up(metrics: PrometheusHandle, end: CancellationToken) {
    let mut pace = tokio::time::interval(UPKEEP);
    loop {
        tokio::select! {
            () = end.cancelled() => return,
            _ = pace.tick() => metrics.run_upkeep(),
        }
    }
}

fn router(shared: Shared) -> Router {
    Router::new()
        .route("/jwks.json", get(jwks))
        .route("/metrics", get(render_metrics))
        .route("/health/live", get(live))
        .route("/health/ready", get(ready))
        .route("/health/actors", get(actors))
        .with_state(shared)
}

async fn jwks(State(shared): State<Shared>) -> Response {
    let headers = [(CONTENT_TYPE, "application/jwk-set+json"), (CACHE_CONTROL, KEY_SET_LIFETIME)];
    (headers, shared.jwks).into_response()
}

async fn render_metrics(State(shared): State<Shared>) -> Response {
    let headers = [(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8"), (CACHE_CONTROL, "no-store")];
    (headers, without_nan(&shared.metrics.render())).into_response()
}

/// A gauge without a number is left out, so that dashboards see no value rather than a wrong one.
fn without_nan(rendered: &str) -> String {
    rendered
        .lines()
        .filter(|line| line.starts_with('#') || !line.ends_with(" NaN"))
        .flat_map(|line| [line, "\n"])
        .collect()
}

async fn live(State(shared): State<Shared>) -> Response {
    if shared.readiness.is_alive() {
        return say(StatusCode::OK, "alive\n".to_owned());
    }
    say(StatusCode::SERVICE_UNAVAILABLE, "the actors have ended\n".to_owned())
}

async fn ready(State(shared): State<Shared>) -> Response {
    let reasons = shared.readiness.reasons();
    if reasons.is_empty() {
        return say(StatusCode::OK, "ready\n".to_owned());
    }
    say(StatusCode::SERVICE_UNAVAILABLE, format!("{}\n", reasons.join("\n")))
}

async fn actors(State(shared): State<Shared>) -> Response {
    ([(CACHE_CONTROL, "no-store")], Json(shared.readiness.report())).into_response()
}

fn say(status: StatusCode, text: String) -> Response {
    (status, [(CACHE_CONTROL, "no-store")], text).into_response()
}

#[cfg(test)]
mod tests {
    use super::without_nan;

    #[test]
    fn gauges_without_a_number_are_left_out() {
        let rendered = "# TYPE a gauge\na{channel=\"x\"} NaN\na{channel=\"y\"} 1\n";
        assert_eq!(without_nan(rendered), "# TYPE a gauge\na{channel=\"y\"} 1\n");
    }
}
