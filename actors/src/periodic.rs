//! Cleanup and gauge: the actors that do one thing every so often.

use std::sync::Arc;

use ractor::{Actor, ActorProcessingErr, ActorRef};

use crate::config::EngineConfig;
use crate::health::Board;
use crate::ids::ChannelName;
use crate::messages::PeriodicMsg;
use crate::ports::Queue;
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

/// Counts what is pending.
pub(crate) struct Gauge<Q: Queue> {
    pub(crate) queue: Arc<Q>,
    pub(crate) channels: Vec<ChannelName>,
    pub(crate) config: Arc<EngineConfig>,
    pub(crate) vitals: Arc<Vitals>,
    pub(crate) board: Board,
}

impl<Q: Queue> Actor for Gauge<Q> {
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
        let call = self.queue.count_pending(&self.channels);
        let counts = state.outage.call("counting", self.config.queue_timeout, &self.vitals, call).await;
        self.board.set_pending(counts.unwrap_or_default());
        state.again_after(self.config.gauge_interval);
        Ok(())
    }
}
