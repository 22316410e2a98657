//! The metrics of the queue. Labels are channel and outcome, never a destination, client or user.
//!
//! A library installs no recorder: these reach whatever the host installed, and nothing where it installed none.

use chrono::{DateTime, Utc};
use metrics::{counter, describe_counter, describe_gauge, gauge};
use postrider_actors::{ChannelName, Ended, FindingCount, FindingKind, PendingCount, Settled, Status, Verdict};

const ATTEMPTS: &str = "postrider_deliveries_attempts_total";
const PENDING: &str = "postrider_deliveries_pending";
const UNSENT: &str = "postrider_mail_unsent_total";
const OLDEST: &str = "postrider_deliveries_oldest_pending_age_seconds";

const RELAY_CONNECTIONS: &str = "postrider_smtp_connections_opened_total";

const FINDINGS: &str = "postrider_audit_findings";
const AUDITED_AT: &str = "postrider_audit_last_success_timestamp_seconds";

/// Describes the metrics and puts each counter at zero, so that a rate is there before the first event.
pub(crate) fn describe(channels: &[ChannelName]) {
    describe_counter!(ATTEMPTS, "Attempts by outcome: succeeded, retried, deferred, failed, lease_lost.");
    describe_counter!(RELAY_CONNECTIONS, "Sessions set up with a mail relay, by its place in the settings, from 0.");
    describe_counter!(
        UNSENT,
        "Mail deliveries that succeeded without a message: moot (nothing to send any more), no_relay."
    );
    describe_gauge!(PENDING, "Deliveries that wait or are being attempted, over all replicas.");
    describe_gauge!(
        OLDEST,
        "Seconds since the oldest pending delivery was created or last retried, over all replicas."
    );
    describe_gauge!(FINDINGS, "What the last audit found wrong, by kind, over all replicas. Zero when all is well.");
    describe_gauge!(AUDITED_AT, "When the last audit that came to its end was made, by the database's clock.");
    for channel in channels {
        for outcome in ["succeeded", "retried", "deferred", "failed", "lease_lost"] {
            counter!(ATTEMPTS, "channel" => channel.to_string(), "outcome" => outcome).increment(0);
        }
    }
}

/// Counts recorded attempts; those whose effect failed are not recorded and not counted.
pub(crate) fn count_attempts<E>(channel: &ChannelName, ended: &[Ended<E>], settled: &[Settled]) {
    for (one, settled) in ended.iter().zip(settled) {
        let outcome = match (settled, one.verdict) {
            (Settled::LeaseLost, _) => "lease_lost",
            (Settled::EffectFailed | Settled::Unrecorded, _) => continue,
            (Settled::Recorded(Status::Pending), Verdict::Defer { .. }) => "deferred",
            (Settled::Recorded(Status::Pending), _) => "retried",
            (Settled::Recorded(Status::Succeeded), _) => "succeeded",
            (Settled::Recorded(Status::Failed | Status::Cancelled), _) => "failed",
        };
        counter!(ATTEMPTS, "channel" => channel.to_string(), "outcome" => outcome).increment(1);
    }
}

/// Counts a session set up with a mail relay, by its place in the settings.
pub(crate) fn count_relay_connection(relay: usize) {
    counter!(RELAY_CONNECTIONS, "relay" => relay.to_string()).increment(1);
}

/// Why a mail delivery succeeded without a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unsent {
    /// There was nothing to send any more when its time came.
    Moot,
    /// No relay is configured.
    NoRelay,
}

impl Unsent {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Moot => "moot",
            Self::NoRelay => "no_relay",
        }
    }
}

pub(crate) fn count_unsent(channel: &ChannelName, why: Unsent) {
    counter!(UNSENT, "channel" => channel.to_string(), "reason" => why.as_str()).increment(1);
}

/// Publishes a count of what is pending. Dropped before it was counted, the gauges hold no number (NaN) until one is.
pub(crate) struct NoNumbers<'a>(&'a [ChannelName]);

impl<'a> NoNumbers<'a> {
    pub(crate) fn unless_counted(channels: &'a [ChannelName]) -> Self {
        Self(channels)
    }

    pub(crate) fn counted(self, counts: &[PendingCount]) {
        for count in counts {
            publish(&count.channel, count.pending as f64, count.oldest_age.as_secs_f64());
        }
        std::mem::forget(self);
    }
}

impl Drop for NoNumbers<'_> {
    fn drop(&mut self) {
        self.0.iter().for_each(|channel| publish(channel, f64::NAN, f64::NAN));
    }
}

fn publish(channel: &ChannelName, pending: f64, oldest: f64) {
    gauge!(PENDING, "channel" => channel.to_string()).set(pending);
    gauge!(OLDEST, "channel" => channel.to_string()).set(oldest);
}

/// Publishes an audit. Dropped before it came to its end, the findings hold no number (NaN) until one does.
pub(crate) struct NoFindings(());

impl NoFindings {
    pub(crate) fn unless_audited() -> Self {
        Self(())
    }

    pub(crate) fn audited(self, findings: &[FindingCount], at: DateTime<Utc>) {
        for kind in FindingKind::ALL {
            let of_kind = findings.iter().filter(|finding| finding.kind == kind);
            publish_findings(kind, of_kind.map(|finding| finding.found).sum::<u64>() as f64);
        }
        gauge!(AUDITED_AT).set(at.timestamp_millis() as f64 / 1000.0);
        std::mem::forget(self);
    }
}

impl Drop for NoFindings {
    fn drop(&mut self) {
        FindingKind::ALL.into_iter().for_each(|kind| publish_findings(kind, f64::NAN));
    }
}

fn publish_findings(kind: FindingKind, found: f64) {
    gauge!(FINDINGS, "kind" => kind.as_str()).set(found);
}
