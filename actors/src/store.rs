//! Whether the queue answers, as the actors see it: an outage is a value.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::ports::QueueError;
use crate::vitals::Vitals;

/// Whether the queue answers calls of one kind, and when to make the next one.
#[derive(Debug, Default)]
pub(crate) struct Outage {
    failures: u32,
    ask_again_at: Option<Instant>,
}

impl Outage {
    const FIRST_WAIT: Duration = Duration::from_millis(200);
    const LONGEST_WAIT: Duration = Duration::from_secs(5);

    /// How long to leave the queue alone; `None`: ask it.
    pub(crate) fn wait(&self) -> Option<Duration> {
        self.ask_again_at.map(|at| at.saturating_duration_since(Instant::now())).filter(|wait| !wait.is_zero())
    }

    /// Leaves the queue alone for a moment, though it answers.
    pub(crate) fn pause(&mut self) {
        self.ask_again_at = Some(Instant::now() + Self::FIRST_WAIT);
    }

    /// The last call failed.
    pub(crate) const fn lasts(&self) -> bool {
        self.failures > 0
    }

    /// Makes one call, and notes what came of it.
    pub(crate) async fn call<T>(
        &mut self,
        during: &'static str,
        deadline: Duration,
        vitals: &Arc<Vitals>,
        call: impl Future<Output = Result<T, QueueError>>,
    ) -> Option<T> {
        let answer = tokio::time::timeout(deadline, call).await;
        vitals.step_done();
        self.heard(answer.unwrap_or(Err(QueueError::TimedOut { during, deadline })), false, vitals)
    }

    /// Notes what came of a call; `elsewhere`: other calls of this actor fail.
    ///
    /// An error is logged when it is the first of an outage, and once a minute or so after that.
    pub(crate) fn heard<T>(&mut self, answer: Result<T, QueueError>, elsewhere: bool, vitals: &Vitals) -> Option<T> {
        match answer {
            Ok(value) => {
                let failures = std::mem::take(self).failures;
                if !elsewhere && vitals.set_store_unreachable(false) {
                    tracing::info!(failures, "the queue answers again");
                }
                Some(value)
            }
            Err(error) => {
                if vitals.set_store_unreachable(true) || self.failures % 16 == 15 {
                    tracing::warn!(error = %error, failures = self.failures + 1, "the queue does not answer");
                }
                tracing::debug!(error = ?error, "queue call failed");
                let wait = Self::FIRST_WAIT.saturating_mul(1 << self.failures.min(10)).min(Self::LONGEST_WAIT);
                self.failures = self.failures.saturating_add(1);
                self.ask_again_at = Some(Instant::now() + wait);
                None
            }
        }
    }
}
