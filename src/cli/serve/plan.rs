//! What is going to be run, checked before anything is started or written.

use std::sync::Arc;
use std::time::Duration;

use url::Url;

use super::arguments::ServeArguments;
use super::engine;
use super::mail::MailPlan;
use crate::channel::{Channel, Channels};
use crate::channels::BackchannelLogout;
use crate::cli::failure::{Exit, Failure};
use crate::identity::ReferenceDirectory;
use crate::links::LinkKeys;
use crate::outbound::{AddressPolicy, HttpsClient, HttpsConfig, HttpsSetupError};
use crate::signing::SigningKeys;
use crate::subsystem::SubsystemConfig;

/// Settings that fit each other, and what was read of the files that they name.
pub(super) struct Plan {
    pub(super) channels: Channels,
    pub(super) config: SubsystemConfig,
    pub(super) keys: SigningKeys,
    /// There are some where e-mail can be sent.
    pub(super) link_keys: Option<LinkKeys>,
    /// Where mail goes, for people.
    pub(super) mail: String,
}

impl Plan {
    pub(super) fn new(arguments: &ServeArguments) -> Result<Self, Failure> {
        let issuer = issuer(&arguments.issuer)?;
        let keys = signing_keys(arguments)?;
        let config = arguments.engine.config();
        let client = client(arguments, config.engine.send_timeout)?;
        let logout = BackchannelLogout::new(Arc::new(ReferenceDirectory), client, issuer, keys.clone());
        let mail = MailPlan::new(arguments, config.engine.send_timeout)?;
        let mut channels: Vec<Arc<dyn Channel>> = vec![Arc::new(logout)];
        channels.extend(mail.channels);
        let channels = Channels::new(channels).map_err(|error| engine::refused(&error.into()))?;
        config.prove(&channels).map_err(|error| engine::refused(&error))?;
        Ok(Self { channels, config, keys, link_keys: mail.link_keys, mail: mail.told })
    }
}

/// An https URL with a host and without query and fragment (OpenID Connect Discovery 1.0, 3), kept byte for byte.
fn issuer(text: &str) -> Result<String, Failure> {
    let url = Url::parse(text).ok().filter(|url| {
        let bare = url.query().is_none() && url.fragment().is_none();
        bare && url.username().is_empty() && url.password().is_none()
    });
    let printable = text.bytes().all(|byte| byte.is_ascii_graphic());
    if url.is_some() && printable && text.starts_with("https://") {
        return Ok(text.to_owned());
    }
    Err(Failure::new(Exit::Usage, format!("--issuer (POSTRIDER_ISSUER) {text:?} is no issuer"))
        .advise("give an https URL without user, query and fragment, exactly as in the ID tokens' iss"))
}

fn signing_keys(arguments: &ServeArguments) -> Result<SigningKeys, Failure> {
    if arguments.signing_keys.is_empty() {
        return Err(Failure::new(Exit::Usage, "no signing key: --signing-key (POSTRIDER_SIGNING_KEYS) is needed")
            .advise("make one with `postrider keys generate FILE`, and name it with --signing-key FILE"));
    }
    SigningKeys::from_pem_files(&arguments.signing_keys).map_err(|error| {
        Failure::new(Exit::Usage, "--signing-key (POSTRIDER_SIGNING_KEYS) cannot be used")
            .because(&error)
            .advise("`postrider keys generate FILE` makes a key that can")
    })
}

fn client(arguments: &ServeArguments, send_timeout: Duration) -> Result<HttpsClient, Failure> {
    let config = HttpsConfig::default();
    let networks = arguments.allow_network_for_tests_and_demos.clone();
    let config = HttpsConfig {
        policy: AddressPolicy::allowing_networks_for_tests_and_demos(networks),
        extra_roots: arguments.extra_roots.clone(),
        name_server: arguments.name_server,
        connect_timeout: config.connect_timeout.min(send_timeout),
        total_timeout: send_timeout,
        ..config
    };
    HttpsClient::new(config).map_err(|error| {
        let what = match &error {
            HttpsSetupError::Tls(_) if arguments.extra_roots.is_some() => {
                "--extra-roots (POSTRIDER_EXTRA_ROOTS) cannot be used"
            }
            HttpsSetupError::Tls(_) => "no root certificates: install ca-certificates, or name some with --extra-roots",
            HttpsSetupError::Resolver { .. } => "no name server: name one with --name-server (POSTRIDER_NAME_SERVER)",
        };
        Failure::new(Exit::Usage, what).because(&error)
    })
}
