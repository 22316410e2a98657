//! `postrider serve`: the subsystem, and HTTP beside it, until a signal or the end of either.

mod arguments;
mod engine;
mod health;
mod http;
mod mail;
mod plan;
mod start;
mod stop;

pub(super) use self::arguments::ServeArguments;
use self::plan::Plan;
use self::start::{Running, start};
use super::arguments::Global;
use super::failure::{Exit, Failure};
use super::signals::Signals;

/// Why it no longer serves.
enum End {
    /// A signal asked for it.
    Asked,
    /// The actors ended by themselves.
    Actors,
    /// The private PostgreSQL did.
    Database(crate::private_postgres::Error),
    /// HTTP is served no more.
    Http,
}

/// Serves until it is asked to end, and then drains.
pub(super) async fn run(global: &Global, arguments: &ServeArguments, signals: &mut Signals) -> Result<(), Failure> {
    let plan = Plan::new(arguments)?;
    let running = tokio::select! {
        running = start(global, arguments, plan) => running?,
        () = signals.next() => return Err(Failure::interrupted()),
    };
    running.announce();
    let ended = Failure::new(Exit::Failed, "postrider ended by itself");
    match wait(&running, signals).await {
        End::Asked => running.drain(signals).await,
        End::Actors => Err(ended.because(&Unexpected("the actors ended by themselves; the log says why"))),
        End::Http => Err(ended.because(&Unexpected("HTTP is served no more"))),
        End::Database(error) => Err(ended.because(&error)),
    }
}

/// An end that nobody asked for.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Unexpected(&'static str);

async fn wait(running: &Running, signals: &mut Signals) -> End {
    let database = async {
        match &running.database.server {
            Some(server) => server.ended().await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = signals.next() => End::Asked,
        () = running.subsystem.ended() => End::Actors,
        error = database => End::Database(error),
        () = running.server.ended() => End::Http,
    }
}
