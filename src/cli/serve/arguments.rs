//! The settings of `postrider serve`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use clap::builder::BoolishValueParser;
use ipnet::IpNet;

use super::engine::EngineArguments;
use super::mail::MailArguments;

#[derive(Debug, Args)]
pub(crate) struct ServeArguments {
    /// Who the logout tokens are from: an https URL, byte for byte the `iss` of the ID tokens.
    #[arg(long, env = "POSTRIDER_ISSUER", value_name = "URL")]
    pub(super) issuer: String,

    /// A file with a private key that signs, for each key; the first of an algorithm signs. In the environment,
    /// separated by commas.
    #[arg(long = "signing-key", env = "POSTRIDER_SIGNING_KEYS", value_name = "FILE", value_delimiter = ',')]
    pub(super) signing_keys: Vec<PathBuf>,

    /// Where /jwks.json, /metrics and /health are served. They have no authentication: keep it on this machine or a
    /// closed network.
    #[arg(long, env = "POSTRIDER_LISTEN", value_name = "ADDR:PORT", default_value = "127.0.0.1:8642")]
    pub(super) listen: SocketAddr,

    /// Migrate the database first. A private PostgreSQL is always migrated.
    #[arg(long, env = "POSTRIDER_MIGRATE", value_parser = BoolishValueParser::new())]
    pub(super) migrate: bool,

    /// A PEM file of root certificates trusted beside the system's.
    #[arg(long, env = "POSTRIDER_EXTRA_ROOTS", value_name = "FILE")]
    pub(super) extra_roots: Option<PathBuf>,

    /// The name server to ask for receivers' addresses. Default: those of /etc/resolv.conf.
    #[arg(long, env = "POSTRIDER_NAME_SERVER", value_name = "ADDR:PORT")]
    pub(super) name_server: Option<SocketAddr>,

    /// A network that receivers may be in though it is not public. Never in production: whoever may name a destination
    /// can then reach it.
    #[arg(long, value_name = "CIDR")]
    pub(super) allow_network_for_tests_and_demos: Vec<IpNet>,

    #[command(flatten)]
    pub(super) mail: MailArguments,

    #[command(flatten)]
    pub(super) engine: EngineArguments,
}
