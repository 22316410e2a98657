//! Previews on a local web page: the text beside the HTML, light, dark and narrow.

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use handlebars::Handlebars;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::Preview;
use crate::cli::failure::{Exit, Failure};
use crate::cli::signals::Signals;
use crate::cli::tell::tell;

/// Nothing but styles of the pages themselves, and one page within another: what a mail client allows, or less.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; frame-src 'self'; frame-ancestors 'self'";

/// All pages by path, made before the first is asked for.
type Pages = Arc<HashMap<String, String>>;

/// Serves the previews on a port that the system chooses, until a signal comes.
pub(super) async fn serve(previews: Vec<Preview>, signals: &mut Signals) -> Result<(), Failure> {
    let failed = |what: &'static str| move |error: std::io::Error| Failure::new(Exit::Failed, what).because(&error);
    let router = Router::new().route("/", get(index)).route("/{page}", get(page)).with_state(pages(previews)?);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(failed("cannot listen"))?;
    let address = listener.local_addr().map_err(failed("cannot listen"))?;
    tell(format!("listening on http://{address}: what e-mails look like, until Ctrl-C"));
    tokio::select! {
        served = axum::serve(listener, router) => served.map_err(failed("previews are served no more")),
        () = signals.next() => Ok(()),
    }
}

fn pages(previews: Vec<Preview>) -> Result<Pages, Failure> {
    let failed = |error: handlebars::RenderError| Failure::new(Exit::Failed, "cannot render a page").because(&error);
    let mut registry = Handlebars::new();
    registry.set_strict_mode(true);
    let all = previews.iter().map(|preview| json!({ "name": preview.name, "subject": preview.rendered.subject }));
    let all: Value = all.collect();
    let mut pages = HashMap::new();
    let mut add = |path: &str, shown: Value| {
        let values = json!({ "all": all, "shown": shown });
        let page = registry.render_template(include_str!("page.html.hbs"), &values).map_err(failed)?;
        pages.insert(path.to_owned(), page);
        Ok(())
    };
    add("", Value::Null)?;
    for Preview { name, rendered, .. } in &previews {
        add(name, json!({ "name": name, "subject": rendered.subject, "text": rendered.text }))?;
    }
    pages.extend(previews.into_iter().map(|Preview { name, rendered, .. }| (format!("{name}.html"), rendered.html)));
    Ok(Arc::new(pages))
}

async fn index(State(pages): State<Pages>) -> Response {
    answer(&pages, "")
}

async fn page(State(pages): State<Pages>, Path(path): Path<String>) -> Response {
    answer(&pages, &path)
}

fn answer(pages: &Pages, path: &str) -> Response {
    let headers = [(CACHE_CONTROL, "no-store"), (CONTENT_SECURITY_POLICY, POLICY)];
    match pages.get(path) {
        Some(page) => (headers, Html(page.clone())).into_response(),
        None => (StatusCode::NOT_FOUND, headers, "there is no such preview\n").into_response(),
    }
}
