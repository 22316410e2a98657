//! Logs: on stderr, coloured on a terminal unless NO_COLOR is set.

use std::env;
use std::io::{self, IsTerminal};

use tracing_subscriber::EnvFilter;

use super::failure::{Exit, Failure};

/// Dependencies that tell of hosts, requests or statements below WARN. A filter that names one of them itself overrides
/// its line here. What sqlx does not understand in a database URL it would log with its value: never.
const CAPS: &str = "hyper=warn,hyper_util=warn,hickory_resolver=warn,hickory_proto=warn,hickory_net=warn,rustls=warn,\
                    tokio_rustls=warn,rustls_platform_verifier=warn,sqlx=warn,sqlx_core=warn,sqlx_postgres=warn,\
                    sqlx_postgres::options=error,axum=warn";

/// Starts logging by `filter`, in the syntax of tracing's `EnvFilter`.
pub(super) fn start(filter: &str) -> Result<(), Failure> {
    let filter = EnvFilter::try_new(format!("{CAPS},{filter}")).map_err(|error| {
        Failure::new(Exit::Usage, format!("--log (POSTRIDER_LOG) {filter:?} is no filter"))
            .because(&error)
            .advise("give a level such as info, or targets with levels such as info,postrider=debug")
    })?;
    let set = |name| env::var_os(name).is_some_and(|value| !value.is_empty());
    let dumb = env::var_os("TERM").is_some_and(|term| term == "dumb");
    let colour = io::stderr().is_terminal() && !set("NO_COLOR") && !dumb;
    let subscriber = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr).with_ansi(colour);
    // A second start, as in a test, keeps the first.
    let _ = subscriber.try_init();
    Ok(())
}
