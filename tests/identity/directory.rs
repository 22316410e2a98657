//! What the directory says where there is nothing, or something that cannot be read.

use postrider::directory::{Directory, Notice};
use postrider::identity::{
    AccountId, AddressId, AnnouncementId, NotificationId, RecoveryId, ReferenceDirectory, notify,
};
use uuid::Uuid;

use crate::world::World;

#[tokio::test]
async fn what_does_not_exist_has_nobody_to_go_to() {
    let world = World::new().await;
    let mut connection = world.connect().await;
    let id = Uuid::now_v7();
    let directory = ReferenceDirectory;
    assert_eq!(directory.verification(&mut connection, AccountId(id), AddressId(id)).await.unwrap(), None);
    assert_eq!(directory.recovery(&mut connection, RecoveryId(id), AddressId(id)).await.unwrap(), None);
    assert_eq!(directory.notification(&mut connection, NotificationId(id)).await.unwrap(), None);
    assert_eq!(directory.announcement(&mut connection, AnnouncementId(id), AccountId(id)).await.unwrap(), None);
    let page = directory.announcement_recipients(&mut connection, AnnouncementId(id), None, 10).await.unwrap();
    assert!(page.is_empty());
    directory.unsubscribe(&mut connection, AccountId(id)).await.unwrap();
}

/// Recorded by this release, it can be read by this release; a row that was tampered with fails the recording instead of
/// telling something wrong.
#[tokio::test]
async fn a_notification_of_a_kind_that_nobody_knows_is_an_error_and_shows_nothing_of_it() {
    let world = World::new().await;
    let (account, _) = world.account_at("alice@a.example").await;
    let mut connection = world.connect().await;
    let notice = Notice::Alert { title: "secret".into(), text: "secret".into() };
    let id = notify(&mut connection, &world.recorder, account, &notice).await.unwrap().committed();
    world.execute("update postrider_identity.notifications set kind = 'secret_kind'".into()).await;
    let error = ReferenceDirectory.notification(&mut connection, id).await.unwrap_err();
    assert!(!format!("{error} {error:?}").contains("secret"), "{error:?}");
}
