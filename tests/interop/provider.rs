//! An OpenID Provider over the reference domain: discovery, authorization code flow, key set. What it issues is
//! signed with Postrider's keys, and its codes are the domain's, so that sessions know their clients.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use aws_lc_rs::digest::{SHA256, digest};
use axum::Router;
use axum::body::Bytes;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Json, Response};
use axum::routing::{get, post};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use chrono::Utc;
use postrider::identity::{AccountId, SessionId, issue_code, redeem_code};
use postrider::signing::{SigningAlgorithm, SigningKeys};
use serde_json::json;
use sqlx::PgPool;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use uuid::Uuid;

use crate::receivers::Ca;

pub const CLIENT_ID: &str = "apache";
pub const CLIENT_SECRET: &str = "shared-with-apache-0123456789abcdef";
/// The browser's cookie here: its value is the session's id.
pub const SESSION_COOKIE: &str = "provider_session";

/// Serves until it is dropped.
pub struct Provider {
    issuer: String,
    task: JoinHandle<()>,
}

struct Inner {
    issuer: String,
    pool: PgPool,
    keys: SigningKeys,
    algorithm: SigningAlgorithm,
    /// By code: what the token endpoint needs of the authorization request.
    requests: Mutex<HashMap<String, (SessionId, String)>>,
}

impl Provider {
    pub async fn start(ca: &Ca, pool: PgPool, keys: SigningKeys, algorithm: SigningAlgorithm) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let issuer = format!("https://127.0.0.1:{}", listener.local_addr().unwrap().port());
        let inner = Inner { issuer: issuer.clone(), pool, keys, algorithm, requests: Mutex::default() };
        let pages = Router::new()
            .route("/.well-known/openid-configuration", get(configuration))
            .route("/authorize", get(authorize))
            .route("/token", post(token))
            .route("/jwks", get(async |State(provider): State<Arc<Inner>>| Json(provider.keys.jwks())))
            .with_state(Arc::new(inner));
        let acceptor = TlsAcceptor::from(Arc::new(ca.certify(&["127.0.0.1"]).server_config()));
        let task = tokio::spawn(async move { axum::serve(OverTls { listener, acceptor }, pages).await.unwrap() });
        Self { issuer, task }
    }

    pub fn issuer(&self) -> &str {
        &self.issuer
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct OverTls {
    listener: TcpListener,
    acceptor: TlsAcceptor,
}

impl axum::serve::Listener for OverTls {
    type Io = TlsStream<TcpStream>;
    type Addr = std::net::SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            let (tcp, peer) = self.listener.accept().await.unwrap();
            if let Ok(stream) = self.acceptor.accept(tcp).await {
                return (stream, peer);
            }
        }
    }

    fn local_addr(&self) -> std::io::Result<Self::Addr> {
        self.listener.local_addr()
    }
}

/// OpenID Connect Discovery 1.0, section 3.
async fn configuration(State(provider): State<Arc<Inner>>) -> Response {
    let issuer = &provider.issuer;
    Json(json!({
        "issuer": issuer,
        "authorization_endpoint": format!("{issuer}/authorize"),
        "token_endpoint": format!("{issuer}/token"),
        "jwks_uri": format!("{issuer}/jwks"),
        "response_types_supported": ["code"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": [provider.algorithm],
        "token_endpoint_auth_methods_supported": ["client_secret_basic"],
        "backchannel_logout_supported": true,
        "backchannel_logout_session_supported": true,
    }))
    .into_response()
}

type Fields = HashMap<String, String>;

fn fields(encoded: &[u8]) -> Fields {
    url::form_urlencoded::parse(encoded).into_owned().collect()
}

/// Whoever has a session here is sent back with a code at once; anybody else would have to sign in.
async fn authorize(State(provider): State<Arc<Inner>>, RawQuery(query): RawQuery, headers: HeaderMap) -> Response {
    let query = fields(query.unwrap_or_default().as_bytes());
    assert_eq!((&*query["client_id"], &*query["response_type"]), (CLIENT_ID, "code"));
    let session = headers.get(header::COOKIE).and_then(|cookie| {
        let cookies = cookie.to_str().unwrap().split("; ");
        cookies.filter_map(|pair| pair.split_once('=')).find(|(name, _)| *name == SESSION_COOKIE)
    });
    let Some((_, session)) = session else { return StatusCode::UNAUTHORIZED.into_response() };
    let session = SessionId(session.parse().unwrap());
    let code = Uuid::new_v4().simple().to_string();
    let mut connection = provider.pool.acquire().await.unwrap();
    issue_code(&mut connection, digest(&SHA256, code.as_bytes()).as_ref(), CLIENT_ID, session).await.unwrap();
    provider.requests.lock().unwrap().insert(code.clone(), (session, query["nonce"].clone()));
    let mut back = url::Url::parse(&query["redirect_uri"]).unwrap();
    back.query_pairs_mut().append_pair("code", &code).append_pair("state", &query["state"]);
    (StatusCode::FOUND, [(header::LOCATION, back.to_string())]).into_response()
}

/// RFC 6749 4.1.3, with the ID token of OpenID Connect Core 1.0, section 2.
async fn token(State(provider): State<Arc<Inner>>, headers: HeaderMap, body: Bytes) -> Response {
    let credentials = format!("Basic {}", BASE64_STANDARD.encode(format!("{CLIENT_ID}:{CLIENT_SECRET}")));
    if headers.get(header::AUTHORIZATION).is_none_or(|sent| sent != &credentials) {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    let code = &fields(&body)["code"];
    let digest = digest(&SHA256, code.as_bytes());
    let mut connection = provider.pool.acquire().await.unwrap();
    if !redeem_code(&mut connection, digest.as_ref()).await.unwrap() {
        return (StatusCode::BAD_REQUEST, Json(json!({ "error": "invalid_grant" }))).into_response();
    }
    let (session, nonce) = provider.requests.lock().unwrap().remove(code).unwrap();
    let account: AccountId = sqlx::query_scalar("select account_id from postrider_identity.sessions where id = $1")
        .bind(session)
        .fetch_one(&mut *connection)
        .await
        .unwrap();
    let now = Utc::now().timestamp();
    let claims = json!({
        "iss": provider.issuer,
        "sub": account.0,
        "aud": CLIENT_ID,
        "iat": now,
        "exp": now + 300,
        "nonce": nonce,
        "sid": session.0,
    });
    let id_token = provider.keys.signer(provider.algorithm).unwrap().sign_jwt("JWT", &claims).unwrap();
    let answer = json!({ "access_token": Uuid::new_v4(), "token_type": "Bearer", "id_token": id_token });
    ([(header::CACHE_CONTROL, "no-store")], Json(answer)).into_response()
}
