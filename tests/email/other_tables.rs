//! A host with tables of its own needs the trait and nothing else.

use std::sync::Arc;

use postrider::identity::{
    AccountId, AddressId, AnnouncementId, AnnouncementSent, NotificationId, Notified, RecoveryId, RecoveryRequested,
    VerificationRequested,
};
use sqlx::{AssertSqlSafe, Row};
use uuid::Uuid;

use crate::club::Club;
use crate::world::World;

async fn club() -> World {
    let world = World::new(Arc::new(Club)).await;
    Club::found(&mut world.connect().await).await;
    world
}

async fn execute(world: &World, statement: String) {
    sqlx::query(AssertSqlSafe(statement)).execute(world.database.pool()).await.unwrap();
}

#[tokio::test]
async fn a_host_with_tables_of_its_own_sends_every_kind_of_mail() {
    let world = club().await;
    let mut connection = world.connect().await;
    let ada = Club::join(&mut connection, "ada", "ada@club.example").await;
    let bob = Club::join(&mut connection, "bob", "bob@club.example").await;
    let cyd = Club::join(&mut connection, "cyd", "cyd@club.example").await;
    execute(&world, format!("update members set newsletter = false where number = '{cyd}'")).await;

    // The address of a member is known by the member's number.
    let address = AddressId(bob.0);
    let token = world.links.keys.verification_token(address);
    sqlx::query("update members set mail_is_theirs = false, link = $2 where number = $1")
        .bind(bob)
        .bind(token.digest().0)
        .execute(&mut connection)
        .await
        .unwrap();
    world.record(&VerificationRequested { account: bob, address }).await;

    let recovery = RecoveryId(Uuid::new_v4());
    let way_in = world.links.keys.recovery_token(recovery);
    sqlx::query("insert into resets (number, member, link) values ($1, $2, $3)")
        .bind(recovery)
        .bind(ada)
        .bind(way_in.digest().0)
        .execute(&mut connection)
        .await
        .unwrap();
    world.record(&RecoveryRequested { account: ada, recovery, address: AddressId(ada.0) }).await;

    let letter = NotificationId(Uuid::new_v4());
    let values = format!("('{letter}', '{cyd}', 'Your fee is due', 'Please pay.')");
    execute(&world, format!("insert into letters (number, member, about, body) values {values}")).await;
    world.record(&Notified { account: cyd, notification: letter }).await;
    world.deliver().await;

    let verification = world.only_mail("bob@club.example");
    assert!(verification.text.contains(&world.links.pages.verification(&token)), "{verification:?}");
    assert!(verification.text.contains("bob"));
    let way_in = world.links.pages.recovery(&way_in);
    assert!(world.only_mail("ada@club.example").text.contains(&way_in));
    let alert = world.only_mail("cyd@club.example");
    assert!(alert.text.contains("Please pay.") && alert.field("Subject").unwrap().contains("Your fee is due"));
}

#[tokio::test]
async fn a_host_with_tables_of_its_own_announces_and_unsubscribes() {
    let world = club().await;
    let mut connection = world.connect().await;
    let mut members: Vec<AccountId> = Vec::new();
    for name in ["ada", "bob", "cyd"] {
        members.push(Club::join(&mut connection, name, &format!("{name}@club.example")).await);
    }
    execute(&world, format!("update members set newsletter = false where number = '{}'", members[2])).await;
    let newsletter = AnnouncementId(Uuid::new_v4());
    let values = format!("('{newsletter}', 'Summer party', 'On the beach.', false)");
    execute(&world, format!("insert into newsletters values {values}")).await;
    world.record(&AnnouncementSent { announcement: newsletter }).await;
    assert_eq!(world.counts("announcement").await["pending"], 2, "who opted out has no delivery");

    // Opted out between the event and the send.
    execute(&world, format!("update members set newsletter = false where number = '{}'", members[1])).await;
    world.deliver().await;
    let mail = world.only_mail("ada@club.example");
    let link = world.links.pages.unsubscribe(&world.links.keys.unsubscribe_token(members[0]));
    assert_eq!(mail.field("List-Unsubscribe"), Some(format!("<{link}>")));
    assert_eq!(mail.field("List-Unsubscribe-Post").as_deref(), Some("List-Unsubscribe=One-Click"));
    assert_eq!(mail.field("Subject").as_deref(), Some("Summer party"));
    assert_eq!(world.mailbox.received().len(), 1);
    assert_eq!(world.counts("announcement").await["succeeded"], 2);
}

/// What a host does not implement fails, and is kept until it does.
#[tokio::test]
async fn what_a_host_does_not_implement_is_deferred_and_not_lost() {
    struct Bare;
    impl postrider::directory::Directory for Bare {}
    let world = World::new(Arc::new(Bare)).await;
    let (account, address) = (AccountId(Uuid::new_v4()), AddressId(Uuid::new_v4()));
    let delivery = world.record(&VerificationRequested { account, address }).await[0];
    let subsystem = world.start().await;
    crate::support::eventually(crate::world::SOON, "it was deferred", async || {
        world.row(delivery).await.last_error.as_deref() == Some("database")
    })
    .await;
    let row = world.row(delivery).await;
    assert_eq!((row.status.as_str(), row.attempts), ("pending", 0));
    subsystem.shut_down().await;
    let recorder = world.recorder();
    let mut transaction = world.database.pool().begin().await.unwrap();
    let event = Notified { account, notification: NotificationId(Uuid::new_v4()) };
    let error = recorder.record(&mut transaction, &event).await.unwrap_err();
    assert!(format!("{error:?}").contains("does not implement notification"), "{error:?}");
    let rows = sqlx::query("select from postrider.deliveries").fetch_all(world.database.pool()).await.unwrap();
    assert!(rows.len() == 1 && rows[0].is_empty());
}
