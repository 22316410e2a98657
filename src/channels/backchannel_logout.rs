//! backchannel_logout: tells each client that has tokens from a session that it ended (OIDC Back-Channel Logout 1.0).

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chrono::Utc;
use postrider_actors::{Attempted, ChannelName, DeliveryId, Lease, Outcome, Reason, Transport};
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;

use super::LEFT_FOR_NEWER;
use crate::channel::Channel;
use crate::delivery::NewDelivery;
use crate::directory::Directory;
use crate::event::Occurred;
use crate::identity::SessionRevoked;
use crate::outbound::header::{CONTENT_TYPE, HeaderValue};
use crate::outbound::{Destination, HeaderMap, HttpsClient, judge};
use crate::queue::{Effect, Reads};
use crate::recorder::RecordError;
use crate::signing::{FORM_CONTENT_TYPE, LogoutSubject, LogoutToken, SigningAlgorithm, SigningKeys, logout_token_form};

const NAME: &str = "backchannel_logout";

/// What a row keeps: all that the token needs, whatever becomes of session, account and client meanwhile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogoutPayload {
    /// `aud` of the token.
    pub client_id: String,
    /// `sub` as the client's ID tokens carry it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub sub: Option<String>,
    /// `sid` as the client's ID tokens carry it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub sid: Option<String>,
    /// What the client's ID tokens are signed with.
    pub algorithm: SigningAlgorithm,
}

/// The channel: no order, MAX_AGE 1 h.
pub struct BackchannelLogout {
    directory: Arc<dyn Directory>,
    transport: Arc<LogoutTransport>,
}

impl BackchannelLogout {
    /// Past this age a delivery fails unsent: a logout that comes an hour late helps nobody.
    pub const MAX_AGE: Duration = Duration::from_secs(3600);

    /// Sends with `client`, as `issuer` (byte-equal to `iss` of the ID tokens), signed with `keys`.
    pub fn new(directory: Arc<dyn Directory>, client: HttpsClient, issuer: String, keys: SigningKeys) -> Self {
        Self { directory, transport: Arc::new(LogoutTransport { client, issuer, keys }) }
    }

    /// Its name.
    #[allow(clippy::expect_used)] // a constant that a test reads
    pub fn channel_name() -> ChannelName {
        NAME.parse().expect("a well-formed name")
    }
}

#[async_trait]
impl Channel for BackchannelLogout {
    fn name(&self) -> ChannelName {
        Self::channel_name()
    }

    fn max_age(&self) -> Duration {
        Self::MAX_AGE
    }

    /// One for each client that received tokens from the session and registered a logout URI.
    async fn deliveries(
        &self,
        connection: &mut PgConnection,
        event: &Occurred<'_>,
    ) -> Result<Vec<NewDelivery>, RecordError> {
        let Some(revoked) = event.of::<SessionRevoked>() else { return Ok(Vec::new()) };
        let clients = self.directory.session_clients(connection, revoked.session).await?;
        let mut deliveries = Vec::with_capacity(clients.len());
        for client in clients {
            let (sub, sid, algorithm) = (client.sub, client.sid, client.algorithm);
            let payload = LogoutPayload { client_id: client.client_id.clone(), sub, sid, algorithm };
            let delivery = NewDelivery::new(client.client_id, client.backchannel_logout_uri, &payload)?;
            deliveries.push(delivery.about(revoked.account.0.to_string())?);
        }
        Ok(deliveries)
    }

    fn transport(&self, _: &Reads) -> Arc<dyn Transport<Effect>> {
        self.transport.clone()
    }
}

struct LogoutTransport {
    client: HttpsClient,
    issuer: String,
    keys: SigningKeys,
}

#[async_trait]
impl Transport<Effect> for LogoutTransport {
    async fn attempt(&self, lease: &Lease) -> Attempted<Effect> {
        let Ok(payload) = serde_json::from_str::<LogoutPayload>(&lease.delivery.payload) else {
            return Outcome::Deferred { reason: Reason::UnreadablePayload, wait: LEFT_FOR_NEWER }.into();
        };
        let Ok(destination) = Destination::parse_with(&lease.delivery.destination, self.client.policy()) else {
            return Outcome::failed(Reason::RefusedDestination).into();
        };
        let token = match self.token(lease.delivery.id, &payload) {
            Ok(token) => token,
            // Keys are the operator's to mend, so the delivery waits for them.
            Err(reason) => return Outcome::retry(reason).into(),
        };
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(FORM_CONTENT_TYPE))]);
        let answer = self.client.post(&destination, headers, logout_token_form(&token).into()).await;
        judge(&answer).into()
    }
}

impl LogoutTransport {
    /// Signed for this attempt: `jti` is the delivery's id in every attempt, `iat` the attempt's own time.
    fn token(&self, delivery: DeliveryId, payload: &LogoutPayload) -> Result<String, Reason> {
        let subject = LogoutSubject::new(payload.sub.as_deref(), payload.sid.as_deref())
            .map_err(|_| Reason::UnreadablePayload)?;
        let token = LogoutToken {
            issuer: &self.issuer,
            client_id: &payload.client_id,
            subject,
            delivery,
            issued_at: Utc::now(),
        };
        token.sign(&self.keys, payload.algorithm)
    }
}
