//! The scenes in their order.

use sqlx::PgConnection;

use super::super::DemoError;
use super::super::narrator::Narrator;
use super::expected::Expected;
use super::facts::{Arrival, Facts};
use super::report::MailReport;
use super::scene::Scene;
use super::{MailStage, addresses, announcements, deliveries, notices, outage, people, recoveries};
use crate::recorder::Recorder;

/// Shows all of it. `others` accounts are active beside the act's own and have no address.
pub(in crate::demo) async fn perform(
    stage: &MailStage,
    recorder: &Recorder,
    connection: &mut PgConnection,
    narrator: &mut Narrator<'_>,
    others: usize,
    misbehaving: bool,
) -> Result<MailReport, DemoError> {
    let people = people::make(connection).await?;
    narrator.say(format_args!("a mailbox listens behind TLS and a login; there are {} more accounts", people.len()))?;
    let mut scene = Scene {
        stage,
        recorder,
        connection,
        narrator,
        people: &people,
        expected: Expected::default(),
        announced: Vec::new(),
        noted: Vec::new(),
    };
    addresses::verify(&mut scene).await?;
    recoveries::recover(&mut scene).await?;
    notices::tell(&mut scene, misbehaving).await?;
    scene.settled("each of these has come to its end").await?;
    outage::outlast(&mut scene).await?;
    announcements::announce(&mut scene, others).await?;

    let Scene { connection, expected, announced, noted, .. } = scene;
    let deliveries = deliveries::deliveries(connection, &people, &announced).await?;
    let arrivals = stage.mailbox.received().into_iter().map(|letter| Arrival::of(letter, &deliveries)).collect();
    Ok(MailReport::new(&Facts { people, expected, deliveries, arrivals, noted }))
}
