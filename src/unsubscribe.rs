//! One-click unsubscribe (RFC 8058): the pages that a host mounts.
//!
//! A mail client posts `List-Unsubscribe=One-Click` to the link in the header, without login, cookie or question. A GET
//! changes nothing, since link scanners make those, and shows a form that posts the same. A token that is not one
//! of ours is answered as any other and changes nothing, so that nobody learns which address exists.
//!
//! ```no_run
//! use std::sync::Arc;
//! use postrider::identity::ReferenceDirectory;
//! use postrider::links::LinkKeys;
//! use postrider::unsubscribe::{Unsubscribe, router};
//!
//! # fn host(pool: sqlx::PgPool, keys: LinkKeys) {
//! let unsubscribe = Unsubscribe::new(Arc::new(ReferenceDirectory), keys, pool);
//! let site: axum::Router = axum::Router::new().nest("/unsubscribe", router(unsubscribe));
//! # }
//! ```

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::rejection::PathRejection;
use axum::extract::{DefaultBodyLimit, FromRequest, Multipart, Path, RawForm, Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use sqlx::PgPool;

use crate::directory::Directory;
use crate::links::LinkKeys;

/// The pair that says so (RFC 8058 3.2).
const FIELD: &str = "List-Unsubscribe";
const VALUE: &str = "One-Click";
/// More than any client sends.
const LARGEST_BODY: usize = 8 * 1024;
/// How long the database may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// What the pages need.
#[derive(Clone)]
pub struct Unsubscribe {
    directory: Arc<dyn Directory>,
    keys: LinkKeys,
    pool: PgPool,
}

impl Unsubscribe {
    /// Opts accounts out through `directory`, over the host's `pool`. Of the [`Directory`] it asks for `unsubscribe`.
    pub fn new(directory: Arc<dyn Directory>, keys: LinkKeys, pool: PgPool) -> Self {
        Self { directory, keys, pool }
    }
}

impl std::fmt::Debug for Unsubscribe {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Unsubscribe")
    }
}

/// `/{token}` below where the host mounts it, which is where [`Pages`](crate::links::Pages) says that it is. It needs no
/// session, reads no cookie and sets none; a host's protection against cross-site requests must let it through.
pub fn router(unsubscribe: Unsubscribe) -> Router {
    Router::new()
        .route("/{token}", get(ask).post(opt_out))
        .layer(DefaultBodyLimit::max(LARGEST_BODY))
        .with_state(unsubscribe)
}

/// The same for every token.
async fn ask() -> Response {
    page(
        StatusCode::OK,
        "Unsubscribe",
        "<p>Do you want no more announcements by e-mail?</p>\n\
         <form method=\"post\"><input type=\"hidden\" name=\"List-Unsubscribe\" value=\"One-Click\">\
         <button>Unsubscribe</button></form>",
    )
}

async fn opt_out(
    State(unsubscribe): State<Unsubscribe>,
    token: Result<Path<String>, PathRejection>,
    request: Request,
) -> Response {
    if !says_one_click(request).await {
        return page(StatusCode::BAD_REQUEST, "Not understood", "<p>Nothing was changed.</p>");
    }
    let account = token.ok().and_then(|Path(token)| unsubscribe.keys.read_unsubscribe_token(&token));
    if let Some(account) = account {
        let acting = async {
            let mut connection = unsubscribe.pool.acquire().await?;
            unsubscribe.directory.unsubscribe(&mut connection, account).await
        };
        match tokio::time::timeout(PATIENCE, acting).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::warn!(error = %error, "an account could not be unsubscribed");
                return try_again();
            }
            Err(_) => {
                tracing::warn!("an account could not be unsubscribed: no answer from the database in time");
                return try_again();
            }
        }
    }
    page(StatusCode::OK, "Done", "<p>This address gets no more announcements.</p>")
}

fn try_again() -> Response {
    page(StatusCode::SERVICE_UNAVAILABLE, "Not now", "<p>Nothing was changed. Please try again in a minute.</p>")
}

/// The pair stands in the body, in either of the forms that clients use (RFC 8058 3.2), once.
async fn says_one_click(request: Request) -> bool {
    let content_type = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let media_type = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let values = match media_type.as_str() {
        "application/x-www-form-urlencoded" => form_values(request).await,
        "multipart/form-data" => multipart_values(request).await,
        _ => None,
    };
    values.is_some_and(|values| values == [VALUE])
}

async fn form_values(request: Request) -> Option<Vec<String>> {
    let RawForm(body) = RawForm::from_request(request, &()).await.ok()?;
    let pairs = url::form_urlencoded::parse(&body);
    Some(pairs.filter(|(name, _)| name == FIELD).map(|(_, value)| value.into_owned()).collect())
}

async fn multipart_values(request: Request) -> Option<Vec<String>> {
    let mut parts = Multipart::from_request(request, &()).await.ok()?;
    let mut values = Vec::new();
    while let Some(part) = parts.next_field().await.ok()? {
        if part.name() == Some(FIELD) {
            values.push(part.text().await.ok()?);
        }
    }
    Some(values)
}

/// Tiny, without anything from elsewhere.
fn page(status: StatusCode, title: &str, body: &str) -> Response {
    const HEADERS: [(HeaderName, HeaderValue); 5] = [
        (CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8")),
        (CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
        (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (
            CONTENT_SECURITY_POLICY,
            HeaderValue::from_static(
                "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'",
            ),
        ),
    ];
    let html = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title>\
         <meta name=\"viewport\" content=\"width=device-width\"><meta name=\"robots\" content=\"noindex\">\
         <style>:root{{color-scheme:light dark}}body{{font:1.1rem/1.5 system-ui,sans-serif;max-width:32rem;margin:4rem auto;\
         padding:0 1rem}}button{{font:inherit;padding:.5rem 1rem}}</style></head>\n\
         <body><h1>{title}</h1>\n{body}\n</body></html>\n"
    );
    (status, HEADERS, html).into_response()
}
