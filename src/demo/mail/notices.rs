//! Notices about accounts, to addresses that take them, refuse them, or take them later.

use sqlx::Connection;

use super::super::DemoError;
use super::addresses::{ask, follow};
use super::expected::{Kind, Why};
use super::people::{first_address, second_address};
use super::scene::{Scene, commit};
use crate::directory::Notice;
use crate::identity::{notify, replace_address};

pub(super) fn passkey() -> Notice {
    Notice::PasskeyAdded { name: "Blue key".into() }
}

pub(super) fn sign_in() -> Notice {
    Notice::NewSignIn { device: "Firefox on Debian".into() }
}

fn alert() -> Notice {
    Notice::Alert { title: "A code was used twice".into(), text: "One of your recovery codes was tried again.".into() }
}

/// A notice for each of several people. With `misbehaving` the mailbox refuses one that it should take.
pub(super) async fn tell(scene: &mut Scene<'_, '_>, misbehaving: bool) -> Result<(), DemoError> {
    let mailbox = &scene.stage.mailbox;
    mailbox.refuse(&first_address("judy"), 550);
    mailbox.refuse_once(&first_address("ken"), 450);
    if misbehaving {
        mailbox.refuse_once(&first_address("ivan"), 550);
    }
    let [heidi, ivan, judy, ken] = ["heidi", "ivan", "judy", "ken"].map(|name| scene.person(name));
    scene.expected.refused(Kind::NewSignIn, judy, 550);
    scene.expected.arrives_late(Kind::NewSignIn, ken, first_address("ken"));
    scene.expected.arrives(Kind::PasskeyAdded, heidi, first_address("heidi"));
    scene.expected.arrives(Kind::Alert, ivan, first_address("ivan"));
    for (name, notice) in [("judy", sign_in()), ("ken", sign_in()), ("heidi", passkey()), ("ivan", alert())] {
        write(scene, name, &notice).await?;
    }
    scene.narrator.say("notices for heidi, ivan, judy and ken; judy's address is refused (550), ken's greylisted")?;
    roll_back(scene).await?;
    replace(scene).await
}

/// Writes a notice to somebody's inbox.
pub(super) async fn write(scene: &mut Scene<'_, '_>, name: &str, notice: &Notice) -> Result<(), DemoError> {
    let account = scene.person(name).account;
    let mut transaction = scene.connection.begin().await?;
    let told = notify(&mut transaction, scene.recorder, account, notice).await?;
    commit(transaction, told).await.map(|_| ())
}

async fn roll_back(scene: &mut Scene<'_, '_>) -> Result<(), DemoError> {
    let lena = scene.person("lena");
    let mut transaction = scene.connection.begin().await?;
    let told = notify(&mut transaction, scene.recorder, lena.account, &passkey()).await?;
    let deliveries = told.deliveries();
    transaction.rollback().await?;
    scene.expected.never(Kind::PasskeyAdded, Why::RolledBack, 1);
    scene.narrator.say(format_args!("lena's notice rolls back with its transaction: {deliveries} delivery never was"))
}

/// Grace replaces her address: the old one is told, the new one verified.
async fn replace(scene: &mut Scene<'_, '_>) -> Result<(), DemoError> {
    let (grace, new) = (scene.person("grace"), second_address("grace"));
    let Some((old, old_address)) = &grace.primary else { return Ok(()) };
    scene.expected.arrives(Kind::AddressReplaced, grace, old_address);
    scene.expected.arrives(Kind::VerificationLink, grace, &new);
    let mut transaction = scene.connection.begin().await?;
    let replaced = replace_address(&mut transaction, scene.recorder, *old, &new).await?;
    let id = commit(transaction, replaced).await?;
    ask(scene, id).await?;
    let followed = follow(scene, &new).await?;
    scene.narrator.say(match followed {
        true => "grace replaces her address; the old one is to hear of it, the new one is verified",
        false => "grace could not follow the link to her new address",
    })
}
