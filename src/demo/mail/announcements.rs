//! Announcements to everybody: one, another after somebody opted out by one click, and one that is essential.

use sqlx::Connection;

use super::super::DemoError;
use super::super::mailbox::Received;
use super::exhibit;
use super::expected::{Kind, Why};
use super::people::{Person, first_address, second_address};
use super::scene::{Scene, commit};
use super::site::click;
use crate::identity::{AnnouncementDraft, Reach, draft_announcement, send_announcement};

/// Who opts out between two announcements.
const OPTS_OUT: &str = "member001";
/// Where the links that opt out lead, below the provider's base.
const PAGE: &str = "/u/";

/// Sends them; `others` accounts are active beside the act's own and have no address.
pub(super) async fn announce(scene: &mut Scene<'_, '_>, others: usize) -> Result<(), DemoError> {
    send(scene, Kind::Announcement, others, None).await?;
    let reader = first_address(OPTS_OUT);
    let Some((letter, _)) = scene.link(&reader, PAGE).await? else { return Ok(()) };
    exhibit::show(scene.narrator, &letter)?;
    let out = opt_out(scene, &letter).await?;
    send(scene, Kind::NextAnnouncement, others, out.then_some(OPTS_OUT)).await?;
    send(scene, Kind::EssentialAnnouncement, others, out.then_some(OPTS_OUT)).await?;
    scene.settled("every announcement has come to its end").await
}

/// One announcement. `out` has opted out since the act began.
async fn send(scene: &mut Scene<'_, '_>, kind: Kind, others: usize, out: Option<&str>) -> Result<(), DemoError> {
    let (subject, text) = words(kind);
    let essential = kind == Kind::EssentialAnnouncement;
    let draft = AnnouncementDraft { subject, text, essential, created_by: "demo" };
    let expected = expect(scene, kind, others, out);
    let mut transaction = scene.connection.begin().await?;
    let announcement = draft_announcement(&mut transaction, &draft).await?;
    let sent = send_announcement(&mut transaction, scene.recorder, announcement, &mut |_| ()).await?;
    let reach = commit(transaction, sent).await?;
    scene.announced.push((announcement, kind));
    if reach != expected {
        scene.noted.push((kind, format!("reached {reach:?}, not {expected:?}")));
    }
    let Reach { recipients, without_address, opted_out } = reach;
    scene.narrator.say(format_args!(
        "{kind}: in {recipients} inboxes; {} by e-mail, {opted_out} opted out, {without_address} without address",
        reach.mailed()
    ))
}

/// Notes who should get it, and returns whom it should reach.
fn expect(scene: &mut Scene<'_, '_>, kind: Kind, others: usize, out: Option<&str>) -> Reach {
    let everybody: u64 = scene.people.len() as u64 + others as u64;
    let mut reach = Reach { recipients: everybody, without_address: others as u64, opted_out: 0 };
    for person in scene.people {
        let is_out = person.opted_out || out == Some(&person.name);
        match primary_address(person) {
            None => reach.without_address += 1,
            Some(_) if is_out && kind.is_subscribed_to() => reach.opted_out += 1,
            Some(_) if person.name == "judy" => scene.expected.refused(kind, person, 550),
            Some(address) => scene.expected.arrives(kind, person, address),
        }
    }
    let number = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
    scene.expected.never(kind, Why::OptedOut, number(reach.opted_out));
    scene.expected.never(kind, Why::NoAddress, number(reach.without_address));
    reach
}

/// After the scenes before this one: ada has a first address, grace another than she had.
fn primary_address(person: &Person) -> Option<String> {
    match person.name.as_str() {
        "ada" => Some(first_address("ada")),
        "grace" => Some(second_address("grace")),
        _ => person.primary.as_ref().map(|(_, address)| address.clone()),
    }
}

const fn words(kind: Kind) -> (&'static str, &'static str) {
    match kind {
        Kind::EssentialAnnouncement => ("New terms from January", "The terms of this service change on 1 January."),
        Kind::NextAnnouncement => ("Dark mode", "All pages have a dark mode now."),
        _ => ("Passkeys on every device", "Passkeys work on every device now. Add one for each that you use."),
    }
}

/// Clicks the letter's one-click link, as a mail client does that reads the header alone.
async fn opt_out(scene: &mut Scene<'_, '_>, letter: &Received) -> Result<bool, DemoError> {
    let header = letter.field("List-Unsubscribe").unwrap_or_default();
    let link = header.trim_start_matches('<').trim_end_matches('>');
    let answered = click(link, scene.stage.client_tls.clone()).await;
    match answered {
        Ok(200) => {
            scene.narrator.say(format_args!("{OPTS_OUT} clicks on unsubscribe: one POST to the header's link, 200"))?;
            Ok(true)
        }
        other => {
            let difference = other.map_or_else(|error| error.to_string(), |status| status.to_string());
            scene.noted.push((Kind::Announcement, format!("one-click unsubscribe: {difference}")));
            Ok(false)
        }
    }
}
