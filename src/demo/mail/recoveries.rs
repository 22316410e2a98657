//! An account is recovered by a link.

use std::time::Duration;

use sqlx::Connection;

use super::super::DemoError;
use super::expected::Kind;
use super::people::{first_address, second_address};
use super::scene::{Scene, commit};
use crate::identity::{RecoveryId, request_recovery, use_recovery};

/// Where the links of recoveries lead, below the provider's base.
const PAGE: &str = "/recover/";
const UNDOABLE_FOR: Duration = Duration::from_secs(24 * 3600);

/// Bob, who has two verified addresses, recovers his account.
pub(super) async fn recover(scene: &mut Scene<'_, '_>) -> Result<(), DemoError> {
    let bob = scene.person("bob");
    scene.expected.arrives(Kind::RecoveryLink, bob, first_address("bob"));
    ask(scene, "bob").await?;
    for address in [first_address("bob"), second_address("bob")] {
        scene.expected.arrives(Kind::AccountRecovered, bob, address);
    }
    let Some((_, token)) = scene.link(&first_address("bob"), PAGE).await? else { return Ok(()) };
    let mut transaction = scene.connection.begin().await?;
    let used = use_recovery(&mut transaction, scene.recorder, &token, Some(UNDOABLE_FOR)).await?;
    commit(transaction, used).await?;
    scene.narrator.say("bob recovers his account by a link; both his addresses are to hear of it")
}

/// Asks for a recovery link.
pub(super) async fn ask(scene: &mut Scene<'_, '_>, name: &str) -> Result<RecoveryId, DemoError> {
    let account = scene.person(name).account;
    let mut transaction = scene.connection.begin().await?;
    let keys = &scene.stage.links.keys;
    let asked = request_recovery(&mut transaction, scene.recorder, keys, account).await?;
    commit(transaction, asked).await
}
