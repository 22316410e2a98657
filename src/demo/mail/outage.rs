//! The relay is down while messages are committed, and what some of them were for changes before it is back.

use sqlx::Connection;

use super::super::DemoError;
use super::addresses::{add, ask, follow};
use super::expected::{Kind, Why};
use super::notices::{sign_in, write};
use super::people::{first_address, second_address};
use super::recoveries;
use super::scene::{Scene, commit};
use crate::identity::{AddressId, RecoveryId, addresses, cancel_recovery, remove_address, replace_address};

/// Commits, tries, changes, and lets the relay come back.
pub(super) async fn outlast(scene: &mut Scene<'_, '_>) -> Result<(), DemoError> {
    scene.stage.mailbox.set_down(true);
    scene.narrator.say("the relay goes down")?;
    let [carol, dan, erin, frank, heidi] = ["carol", "dan", "erin", "frank", "heidi"].map(|name| scene.person(name));

    scene.expected.arrives_late(Kind::NewSignIn, heidi, first_address("heidi"));
    write(scene, "heidi", &sign_in()).await?;
    for person in [dan, erin] {
        scene.expected.arrives_late(Kind::AddressAdded, person, first_address(&person.name));
    }
    scene.expected.unsent(Kind::VerificationLink, dan, Why::AddressRemoved);
    let removed = add(scene, "dan", &second_address("dan")).await?;
    scene.expected.unsent(Kind::VerificationLink, erin, Why::AddressReplaced);
    let replaced = add(scene, "erin", &second_address("erin")).await?;
    scene.expected.unsent(Kind::VerificationLink, frank, Why::AlreadyVerified);
    ask_again(scene, "frank").await?;
    scene.expected.unsent(Kind::RecoveryLink, carol, Why::RecoveryCancelled);
    let recovery = recoveries::ask(scene, "carol").await?;
    let tried = scene.tried().await?;
    scene
        .narrator
        .say(format_args!("{tried} messages are committed and tried in vain; before they are tried again,"))?;

    remove(scene, removed).await?;
    let new = replace(scene, replaced).await?;
    follow(scene, &second_address("frank")).await?;
    cancel(scene, recovery).await?;
    scene
        .narrator
        .line("         dan removes the address, erin replaces hers, frank's is verified by an older link,")?;
    scene.narrator.line("         and carol's recovery is cancelled: four links that have nobody to go to")?;

    scene.expected.arrives(Kind::VerificationLink, erin, "erin@example.com");
    ask(scene, new).await?;
    scene.stage.mailbox.set_down(false);
    scene.settled("the relay is back, and each has come to its end").await
}

/// Asks again for the link to an address that is not verified.
async fn ask_again(scene: &mut Scene<'_, '_>, name: &str) -> Result<(), DemoError> {
    let found = addresses(scene.connection, scene.person(name).account).await?;
    match found.iter().find(|address| address.verified_at.is_none()) {
        Some(address) => ask(scene, address.id).await,
        None => Ok(()),
    }
}

async fn remove(scene: &mut Scene<'_, '_>, address: AddressId) -> Result<(), DemoError> {
    let mut transaction = scene.connection.begin().await?;
    let removed = remove_address(&mut transaction, scene.recorder, address).await?;
    commit(transaction, removed).await
}

async fn replace(scene: &mut Scene<'_, '_>, address: AddressId) -> Result<AddressId, DemoError> {
    let mut transaction = scene.connection.begin().await?;
    let replaced = replace_address(&mut transaction, scene.recorder, address, "erin@example.com").await?;
    commit(transaction, replaced).await
}

async fn cancel(scene: &mut Scene<'_, '_>, recovery: RecoveryId) -> Result<(), DemoError> {
    let mut transaction = scene.connection.begin().await?;
    cancel_recovery(&mut transaction, recovery).await?;
    Ok(transaction.commit().await?)
}
