//! Stopping in order: not ready, actors, HTTP, private PostgreSQL. A second signal ends all at once.

use std::process::exit;

use super::start::Running;
use crate::cli::failure::{Exit, Failure};
use crate::cli::signals::Signals;
use crate::cli::tell::tell;

impl Running {
    /// Bounded by the shutdown deadline and a few seconds.
    pub(super) async fn drain(self, signals: &mut Signals) -> Result<(), Failure> {
        tracing::info!("draining: a second signal ends at once");
        self.readiness.drain();
        let in_order = async {
            let report = self.subsystem.shut_down().await;
            if report.aborted_attempts > 0 {
                tracing::warn!(
                    attempts = report.aborted_attempts,
                    "attempts were aborted at the shutdown deadline; they are sent again when their leases have ended"
                );
            }
            self.server.stop().await;
            self.database.close().await
        };
        tokio::select! {
            done = in_order => done,
            () = signals.next() => {
                tell("interrupted: attempts under way are sent again when their leases have ended");
                // Not by way of drops, which wait: the kernel tells a private PostgreSQL to end.
                exit(Exit::Interrupted as i32)
            }
        }
    }
}
