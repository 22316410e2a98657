//! Watches deliveries until all have come to the end that is expected of them, and tells what is worth telling.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use postrider_actors::Status;
use sqlx::PgConnection;
use tokio::time::MissedTickBehavior;

use super::DemoError;
use super::cast::{Attempts, Met, Role, Visits};
use super::database::{Delivery, deliveries};
use super::health::Drawn;
use super::narrator::Narrator;
use super::pace::Pace;
use super::receiver::{Answer, Behaviour, Receipt};
use super::stage::Stage;

const LOOK_EVERY: Duration = Duration::from_millis(250);
/// When the burst is over and what hangs is still there to be seen.
const HEALTH_AFTER: Duration = Duration::from_secs(1);

pub(super) struct Watch<'a> {
    pub(super) stage: &'a Stage,
    pub(super) cast: &'a [Role],
    pub(super) clients: &'a [String],
    pub(super) pace: &'a Pace,
    /// Deliveries that were recorded.
    pub(super) recorded: usize,
}

/// What has been told so far.
#[derive(Default)]
struct Told {
    receipts: usize,
    /// A receiver and how often it had seen a delivery.
    steps: BTreeSet<(usize, u32)>,
    prompt: bool,
    health: bool,
}

impl Watch<'_> {
    /// Returns once nothing more is expected to happen, or the patience is at its end.
    pub(super) async fn until_all_ended(
        &self,
        connection: &mut PgConnection,
        narrator: &mut Narrator<'_>,
    ) -> Result<(), DemoError> {
        let begun = Instant::now();
        let mut told = Told::default();
        let mut look = tokio::time::interval(LOOK_EVERY);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = self.stage.ledger().changed() => self.tell_receipts(&mut told, narrator)?,
                _ = look.tick() => {
                    let found = deliveries(connection, self.clients).await?;
                    if self.have_ended(&found) {
                        self.tell_receipts(&mut told, narrator)?;
                        return narrator.say("every delivery has come to its end");
                    }
                    if begun.elapsed() > self.pace.patience() {
                        return narrator.say("not every delivery has come to its end: waited long enough");
                    }
                    self.tell_prompt(begun, &found, &mut told, narrator)?;
                    narrator.status(summary(&found))?;
                    if !told.health && begun.elapsed() > HEALTH_AFTER {
                        told.health = true;
                        self.tell_health(narrator)?;
                    }
                }
            }
        }
    }

    /// A delivery that is expected to stay pending has ended, for the demo, when it has been tried often enough.
    fn have_ended(&self, found: &[Delivery]) -> bool {
        let has_ended = |delivery: &Delivery| {
            let expected = self.cast.get(delivery.role).map(|role| role.expected);
            delivery.status != Status::Pending || expected.is_some_and(|expected| expected.is_met_by(delivery))
        };
        found.len() == self.recorded && found.iter().all(has_ended)
    }

    fn tell_receipts(&self, told: &mut Told, narrator: &mut Narrator<'_>) -> Result<(), DemoError> {
        let receipts = self.stage.ledger().receipts();
        for receipt in &receipts[told.receipts..] {
            let Some(role) = self.cast.get(receipt.role) else { continue };
            // The opening has told of its own.
            let usual = matches!(receipt.answer, Answer::Status(200 | 204)) || role.visits == Visits::Opening;
            let notable = receipt.seen > 1 || !usual;
            if notable && told.steps.insert((receipt.role, receipt.seen)) {
                narrator.say(in_words(role, receipt, &receipts))?;
            }
        }
        told.receipts = receipts.len();
        Ok(())
    }

    /// Says once how soon those were told who answer at once, whoever else hangs.
    fn tell_prompt(
        &self,
        begun: Instant,
        found: &[Delivery],
        told: &mut Told,
        narrator: &mut Narrator<'_>,
    ) -> Result<(), DemoError> {
        let is_prompt = |position: usize| {
            let role = self.cast.get(position);
            role.is_some_and(|role| {
                matches!(role.behaviour, Behaviour::Answers(_))
                    && role.expected.attempts == Attempts::Exactly(1)
                    && role.expected.met == Met::EveryAttempt
            })
        };
        let theirs = || found.iter().filter(|delivery| is_prompt(delivery.role));
        if told.prompt || found.len() != self.recorded || theirs().any(|delivery| delivery.status == Status::Pending) {
            return Ok(());
        }
        told.prompt = true;
        let receipts = self.stage.ledger().receipts();
        let last = receipts.iter().filter(|receipt| is_prompt(receipt.role)).map(|receipt| receipt.at).max();
        let after = last.map_or(0, |last| last.saturating_duration_since(begun).as_millis());
        let hangs = |receipt: &&Receipt| {
            let role = self.cast.get(receipt.role);
            receipt.answer == Answer::Silence && role.is_some_and(|role| role.visits != Visits::Opening)
        };
        let hanging = receipts.iter().filter(hangs).count();
        narrator.say(format_args!(
            "receivers that answer at once had all {} deliveries {after} ms after the last commit,",
            theirs().count(),
        ))?;
        narrator.line(format_args!(
            "         while hanging takes {hanging} of the {} slots in which attempts are made",
            self.pace.slots()
        ))
    }

    fn tell_health(&self, narrator: &mut Narrator<'_>) -> Result<(), DemoError> {
        narrator.say("the actors' health:")?;
        let health = self.stage.subsystem().health();
        for line in Drawn(&health.tree).to_string().lines() {
            narrator.line(format_args!("         {line}"))?;
        }
        let (send_timeout, lease) = (self.pace.send_timeout.as_secs(), self.pace.lease.as_secs());
        narrator.say(format_args!(
            "soon only hanging (send timeout: {send_timeout} s) and orphaned (lease: {lease} s) are waited for"
        ))
    }
}

fn in_words(role: &Role, receipt: &Receipt, receipts: &[Receipt]) -> String {
    let (name, answer) = (role.name, receipt.answer);
    if receipt.seen == 1 {
        return format!("{name} {answer}");
    }
    let before = receipts.iter().rev().find(|other| other.jti == receipt.jti && other.seen + 1 == receipt.seen);
    let after = before.map_or(0.0, |before| receipt.at.duration_since(before.at).as_secs_f64());
    format!("{name} gets the same jti again, {after:.1} s later, and {answer}")
}

fn summary(found: &[Delivery]) -> String {
    let count = |status| found.iter().filter(|delivery| delivery.status == status).count();
    let [succeeded, failed, pending] = [Status::Succeeded, Status::Failed, Status::Pending].map(count);
    format!("deliveries: {succeeded} succeeded, {failed} failed, {pending} pending")
}
