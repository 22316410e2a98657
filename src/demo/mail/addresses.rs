//! Addresses are added and verified by the links that arrive there.

use sqlx::Connection;

use super::super::DemoError;
use super::expected::Kind;
use super::people::{first_address, second_address};
use super::scene::{Scene, commit};
use crate::identity::{AddressId, add_address, request_verification, verify_address};

/// Where the links of verifications lead, below the provider's base.
const PAGE: &str = "/email/verify/";

/// Ada's first address; a second one of bob's; and one of frank's, whose link is kept for later.
pub(super) async fn verify(scene: &mut Scene<'_, '_>) -> Result<(), DemoError> {
    add(scene, "ada", &first_address("ada")).await?;
    for name in ["bob", "frank"] {
        add(scene, name, &second_address(name)).await?;
        let person = scene.person(name);
        scene.expected.arrives(Kind::AddressAdded, person, first_address(name));
        scene.expected.arrives(Kind::VerificationLink, person, second_address(name));
    }
    let ada = scene.person("ada");
    scene.expected.arrives(Kind::VerificationLink, ada, first_address("ada"));
    scene.narrator.say("ada adds her first address; bob and frank add a second one: to each goes a link")?;
    let followed = follow(scene, &first_address("ada")).await? && follow(scene, &second_address("bob")).await?;
    scene.narrator.say(match followed {
        true => "the links arrive; ada and bob follow theirs, and the addresses are verified",
        false => "ada or bob could not follow a link",
    })
}

/// Adds an address and asks for its link, in one transaction.
pub(super) async fn add(scene: &mut Scene<'_, '_>, name: &str, address: &str) -> Result<AddressId, DemoError> {
    let account = scene.person(name).account;
    let mut transaction = scene.connection.begin().await?;
    let added = add_address(&mut transaction, scene.recorder, account, address).await?;
    let keys = &scene.stage.links.keys;
    let asked = request_verification(&mut transaction, scene.recorder, keys, added.value).await?;
    let id = commit(transaction, added).await?;
    asked.committed();
    Ok(id)
}

/// Asks for a link to an address that is there.
pub(super) async fn ask(scene: &mut Scene<'_, '_>, address: AddressId) -> Result<(), DemoError> {
    let mut transaction = scene.connection.begin().await?;
    let keys = &scene.stage.links.keys;
    let asked = request_verification(&mut transaction, scene.recorder, keys, address).await?;
    commit(transaction, asked).await
}

/// Follows the link that came to `address`; false where none came.
pub(super) async fn follow(scene: &mut Scene<'_, '_>, address: &str) -> Result<bool, DemoError> {
    let Some((_, token)) = scene.link(address, PAGE).await? else { return Ok(false) };
    let mut transaction = scene.connection.begin().await?;
    verify_address(&mut transaction, &token).await?;
    transaction.commit().await?;
    Ok(true)
}
