//! What runs during a demo: receivers, a mailbox and the subsystem. It ends with [`Stage::strike`], and also when it is dropped.

use std::sync::Arc;

use postrider_actors::{ChildId, ShutdownReport};
use sqlx::PgConnection;
use sqlx::postgres::PgConnectOptions;

use super::DemoError;
use super::authority::Authority;
use super::cast::{INSIDE, PRIVATE, Place, Role};
use super::domain::{Run, register};
use super::mail::MailStage;
use super::pace::Pace;
use super::receiver::{Jwks, LOGOUT_PATH, Ledger, Receivers, Relying};
use crate::channel::Channels;
use crate::channels::BackchannelLogout;
use crate::identity::ReferenceDirectory;
use crate::outbound::{AddressPolicy, HttpsClient, HttpsConfig};
use crate::signing::{SigningAlgorithm, SigningKey, SigningKeys};
use crate::subsystem::{Subsystem, SubsystemConfig};

const ISSUER: &str = "https://id.example.com";
const LOOPBACK: &str = "127.0.0.1";
const ANOTHER_NAME: &str = "another-name.example.com";
/// Port 9 of loopback, where nobody answers: every destination is an address, so no name is ever looked up.
const NO_NAME_SERVER: ([u8; 4], u16) = ([127, 0, 0, 1], 9);

pub(super) struct Stage {
    receivers: Receivers,
    mail: MailStage,
    subsystem: Running,
}

impl Stage {
    /// Starts the receivers, registers their clients, starts the mailbox and the subsystem.
    pub(super) async fn set(
        database: &PgConnectOptions,
        connection: &mut PgConnection,
        run: &Run,
        cast: &[Role],
        pace: &Pace,
    ) -> Result<Self, DemoError> {
        let keys = SigningAlgorithm::ALL.map(SigningKey::generate).into_iter().collect::<Result<Vec<_>, _>>()?;
        let keys = SigningKeys::new(keys)?;
        let jwks = Arc::new(Jwks::read(&keys.jwks()));
        let policy = loopback_alone();
        let authority = Authority::new()?;
        let mut receivers = Receivers::default();
        for (position, role) in cast.iter().enumerate() {
            let relying = Relying {
                role: position,
                client_id: run.client_id(role),
                algorithm: role.algorithm,
                issuer: ISSUER,
                jwks: Arc::clone(&jwks),
                behaviour: role.behaviour,
            };
            let uri = start_receiver(&mut receivers, &authority, role.place, relying).await?;
            register(connection, run, role, &uri, &policy).await?;
        }
        let client = HttpsClient::new(HttpsConfig {
            policy,
            extra_roots: Some(authority.root_certificate()),
            name_server: Some(NO_NAME_SERVER.into()),
            total_timeout: pace.send_timeout,
            ..HttpsConfig::default()
        })?;
        let channel = BackchannelLogout::new(Arc::new(ReferenceDirectory), client, ISSUER.into(), keys);
        let mail = MailStage::set(database, &authority, pace).await?;
        let [email, announcement] = mail.channels();
        let channels = Channels::new(vec![Arc::new(channel), email, announcement])?;
        let config = SubsystemConfig { engine: pace.engine(), ..SubsystemConfig::default() };
        let subsystem = Running(Subsystem::spawn(database.clone(), channels, config).await?);
        Ok(Self { receivers, mail, subsystem })
    }

    pub(super) fn subsystem(&self) -> &Subsystem {
        &self.subsystem.0
    }

    pub(super) fn mail(&self) -> &MailStage {
        &self.mail
    }

    pub(super) fn ledger(&self) -> &Ledger {
        self.receivers.ledger()
    }

    /// Ends everything at once, as a demo does that cannot go on.
    pub(super) async fn abandon(&mut self) {
        self.subsystem.kill();
        self.strike().await;
    }

    /// Shuts the subsystem down in order, then ends the receivers.
    pub(super) async fn strike(&mut self) -> ShutdownReport {
        let report = self.subsystem.0.shut_down().await;
        self.receivers.end().await;
        report
    }
}

/// Ends the actors when it is dropped, as a demo that is cancelled drops it. That is a crash and no shutdown: attempts
/// are aborted and their leases run out.
struct Running(Subsystem);

impl Running {
    fn kill(&self) {
        self.0.kill(&ChildId::Supervisor);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

/// 127.0.0.1 and nothing else that is not public: not the rest of loopback either.
fn loopback_alone() -> AddressPolicy {
    AddressPolicy::allowing_networks_for_tests_and_demos(vec![std::net::IpAddr::from([127, 0, 0, 1]).into()])
}

/// Starts what is to be at `place` and returns the logout URI that leads there.
async fn start_receiver(
    receivers: &mut Receivers,
    authority: &Authority,
    place: Place,
    relying: Relying,
) -> Result<String, DemoError> {
    let (host, name) = match place {
        Place::Loopback => (LOOPBACK, LOOPBACK),
        Place::UnderAnotherName => (LOOPBACK, ANOTHER_NAME),
        Place::Inside => (INSIDE, INSIDE),
        Place::Private => return Ok(format!("https://{PRIVATE}{LOGOUT_PATH}")),
    };
    let tls = authority.certify(name)?;
    let started = receivers.start(host, tls, relying).await;
    let address = started.map_err(|source| DemoError::Listen { host, source })?;
    Ok(format!("https://{address}{LOGOUT_PATH}"))
}
