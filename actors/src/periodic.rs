//! Cleanup and gauge: the actors that do one thing every so often.

use std::sync::Arc;

use ractor::{Actor, ActorProcessingErr, ActorRef};
use tokio::time::Instant;

use crate::audit::{AuditPolicy, FindingCount};
use crate::config::EngineConfig;
use crate::health::Board;
use crate::ids::ChannelName;
use crate::messages::PeriodicMsg;
use crate::ports::{ChannelPolicy, Queue, QueueError};
use crate::store::Outage;
use crate::vitals::{Inbox, Timer, Vitals};

pub(crate) struct PeriodicState {
    me: Inbox<PeriodicMsg>,
    outage: Outage,
    _timer: Option<Timer>,
}

impl PeriodicState {
    fn begin(me: ActorRef<PeriodicMsg>, vitals: &Arc<Vitals>) -> Self {
        let me = Inbox::new(me, Arc::clone(vitals));
        me.send(PeriodicMsg::Tick);
        Self { me, outage: Outage::default(), _timer: None }
    }

    /// Sooner after a failure, so that it is known soon when the queue answers again.
    fn again_after(&mut self, interval: std::time::Duration) {
        let wait = self.outage.wait().unwrap_or(interval).min(interval);
        self._timer = Some(self.me.send_after(wait, PeriodicMsg::Tick));
    }
}

/// Deletes and abandons by age, in bounded passes.
pub(crate) struct Cleanup<Q: Queue> {
    pub(crate) queue: Arc<Q>,
    pub(crate) config: Arc<EngineConfig>,
    pub(crate) vitals: Arc<Vitals>,
}

impl<Q: Queue> Actor for Cleanup<Q> {
    type Msg = PeriodicMsg;
    type State = PeriodicState;
    type Arguments = ();

    async fn pre_start(&self, me: ActorRef<PeriodicMsg>, (): ()) -> Result<PeriodicState, ActorProcessingErr> {
        Ok(PeriodicState::begin(me, &self.vitals))
    }

    async fn handle(
        &self,
        _me: ActorRef<PeriodicMsg>,
        PeriodicMsg::Tick: PeriodicMsg,
        state: &mut PeriodicState,
    ) -> Result<(), ActorProcessingErr> {
        let _handling = self.vitals.handling();
        let call = self.queue.clean_up(&self.config.retention);
        let cleaned = state.outage.call("cleaning up", self.config.cleanup_timeout, &self.vitals, call).await;
        if let Some(cleaned) = cleaned.filter(|cleaned| cleaned.abandoned_keys > 0) {
            tracing::warn!(
                keys = cleaned.abandoned_keys,
                cancelled = cleaned.cancelled,
                "abandoned ordered keys: their failures were past retention and nobody retried or cancelled them"
            );
        }
        if cleaned.is_some_and(|cleaned| cleaned.more) {
            state.me.send(PeriodicMsg::Tick);
        } else {
            state.again_after(self.config.cleanup_interval);
        }
        Ok(())
    }
}

/// Counts what is pending, and now and then looks for broken promises.
pub(crate) struct Gauge<Q: Queue> {
    pub(crate) queue: Arc<Q>,
    pub(crate) channels: Vec<ChannelPolicy>,
    pub(crate) config: Arc<EngineConfig>,
    pub(crate) vitals: Arc<Vitals>,
    pub(crate) board: Board,
}

pub(crate) struct GaugeState {
    periodic: PeriodicState,
    audit_at: Instant,
}

impl<Q: Queue> Actor for Gauge<Q> {
    type Msg = PeriodicMsg;
    type State = GaugeState;
    type Arguments = ();

    async fn pre_start(&self, me: ActorRef<PeriodicMsg>, (): ()) -> Result<GaugeState, ActorProcessingErr> {
        // Not at once: what became late while nobody ran is claimed first.
        let audit_at = Instant::now() + self.config.gauge_interval.min(self.config.audit_interval);
        Ok(GaugeState { periodic: PeriodicState::begin(me, &self.vitals), audit_at })
    }

    async fn handle(
        &self,
        _me: ActorRef<PeriodicMsg>,
        PeriodicMsg::Tick: PeriodicMsg,
        state: &mut GaugeState,
    ) -> Result<(), ActorProcessingErr> {
        let _handling = self.vitals.handling();
        let names: Vec<ChannelName> = self.channels.iter().map(|channel| channel.name.clone()).collect();
        let call = self.queue.count_pending(&names);
        let counts = state.periodic.outage.call("counting", self.config.queue_timeout, &self.vitals, call).await;
        let answers = counts.is_some();
        self.board.set_pending(counts.unwrap_or_default());
        if answers && Instant::now() >= state.audit_at {
            self.audit().await;
            state.audit_at = Instant::now() + self.config.audit_interval;
        }
        state.periodic.again_after(self.config.gauge_interval);
        Ok(())
    }
}

impl<Q: Queue> Gauge<Q> {
    /// An audit that fails says nothing of whether the queue answers: it may just have much to look at.
    async fn audit(&self) {
        let policy = AuditPolicy {
            channels: self.channels.clone(),
            older_than: self.config.audit_older_than,
            rows: self.config.audit_rows,
        };
        let deadline = self.config.queue_timeout;
        let findings = match tokio::time::timeout(deadline, self.queue.audit(&policy)).await {
            Ok(findings) => findings,
            Err(_elapsed) => Err(QueueError::TimedOut { during: "auditing", deadline }),
        };
        self.vitals.step_done();
        match findings {
            Ok(findings) => {
                for FindingCount { kind, channel, found } in findings {
                    let channel = channel.as_ref().map(ChannelName::as_str);
                    tracing::warn!(%kind, channel, found, "an audit found a broken promise; see `postrider audit`");
                }
            }
            Err(error) => {
                tracing::warn!(error = %error, "the audit did not come to its end");
                tracing::debug!(error = ?error, "audit failed");
            }
        }
    }
}
