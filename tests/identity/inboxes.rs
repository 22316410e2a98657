//! Notifications and whom they are mailed to.

use postrider::directory::{Notice, SecuringStep};
use postrider::identity::{
    AccountId, ActError, InboxText, Missing, NotificationId, inbox, mark_read, notify, remove_address,
    send_announcement,
};

use crate::world::{World, texts};

fn passkey() -> Notice {
    Notice::PasskeyAdded { name: "Key \"1\"".into() }
}

#[tokio::test]
async fn each_notification_goes_to_the_addresses_that_its_kind_names_each_once() {
    let world = World::new().await;
    let (account, _) = world.account_at("primary@a.example").await;
    world.verified(account, "second@a.example").await;
    world.unverified(account, "unverified@a.example").await;
    let gone = world.verified(account, "gone@a.example").await;
    let mut connection = world.connect().await;
    remove_address(&mut connection, &world.recorder, gone).await.unwrap().committed();
    world.account_at("stranger@a.example").await;
    world.forget();
    let text = || "text".to_owned();
    let every = vec!["primary@a.example", "second@a.example"];
    let primary = vec!["primary@a.example"];
    for (notice, expected) in [
        (Notice::AccountSecured { done: vec![SecuringStep::SessionsEnded] }, &every),
        (Notice::AccountRecovered { undoable: None }, &every),
        (Notice::AddressAdded, &primary),
        (passkey(), &primary),
        (Notice::PasskeyRemoved { name: text() }, &primary),
        (Notice::NewSignIn { device: text() }, &primary),
        (Notice::Alert { title: text(), text: text() }, &primary),
    ] {
        let id = notify(&mut connection, &world.recorder, account, &notice).await.unwrap().committed();
        let mail = world.mail();
        assert_eq!((&mail.notice, &texts(&mail)), (&notice, expected));
        assert_eq!((mail.account, mail.handle.as_str()), (account, "primary@a.example"));
        assert_eq!(world.events("notified").await.pop().unwrap()["notification"], id.to_string());
        let entry = inbox(&mut connection, account, None, 1).await.unwrap().remove(0);
        assert_eq!((entry.id, entry.at, entry.read_at), (id, mail.at, None));
        assert_eq!(entry.says, InboxText::Notice(notice), "the inbox says what the e-mail says");
    }
    for notice in [Notice::AddressRemoved, Notice::AddressReplaced] {
        let refused = notify(&mut connection, &world.recorder, account, &notice).await.unwrap_err();
        assert!(matches!(refused, ActError::OfAnAct));
    }
}

#[tokio::test]
async fn without_a_verified_address_it_stays_in_the_inbox() {
    let world = World::new().await;
    let account = world.account("alice").await;
    world.unverified(account, "alice@a.example").await;
    let mut connection = world.connect().await;
    for notice in [passkey(), Notice::AccountSecured { done: Vec::new() }] {
        notify(&mut connection, &world.recorder, account, &notice).await.unwrap().committed();
        assert_eq!(texts(&world.mail()), Vec::<&str>::new());
    }
    assert_eq!(inbox(&mut connection, account, None, 10).await.unwrap().len(), 2);
    let nobody = AccountId(uuid::Uuid::now_v7());
    let refused = notify(&mut connection, &world.recorder, nobody, &passkey()).await.unwrap_err();
    assert!(matches!(refused, ActError::NoSuch(Missing::Account)));
}

/// Its row copies the address in the same transaction; the domain still knows which one it was.
#[tokio::test]
async fn a_notification_names_an_address_that_is_removed_before_it_is_sent() {
    let world = World::new().await;
    let (account, _) = world.account_at("primary@a.example").await;
    let second = world.verified(account, "second@a.example").await;
    let mut connection = world.connect().await;
    let secured = Notice::AccountSecured { done: Vec::new() };
    let id = notify(&mut connection, &world.recorder, account, &secured).await.unwrap().committed();
    let before = world.notification(id).await.unwrap();
    remove_address(&mut connection, &world.recorder, second).await.unwrap().committed();
    assert_eq!(world.notification(id).await.unwrap(), before);
}

#[tokio::test]
async fn an_inbox_is_read_newest_first_page_by_page_and_by_its_owner_alone() {
    let world = World::new().await;
    let (account, _) = world.account_at("alice@a.example").await;
    let (other, _) = world.account_at("other@a.example").await;
    let mut connection = world.connect().await;
    let mut ids: Vec<NotificationId> = Vec::new();
    for number in 0..5 {
        let notice = Notice::NewSignIn { device: number.to_string() };
        ids.push(notify(&mut connection, &world.recorder, account, &notice).await.unwrap().committed());
    }
    ids.reverse();
    let first = inbox(&mut connection, account, None, 3).await.unwrap();
    let second = inbox(&mut connection, account, Some(first[2].id), 3).await.unwrap();
    assert_eq!(first.iter().chain(&second).map(|entry| entry.id).collect::<Vec<_>>(), ids);
    assert!(inbox(&mut connection, other, None, 3).await.unwrap().is_empty());

    assert!(!mark_read(&mut connection, other, ids[0]).await.unwrap(), "not theirs");
    assert!(mark_read(&mut connection, account, ids[0]).await.unwrap());
    assert!(!mark_read(&mut connection, account, ids[0]).await.unwrap(), "read once");
    let read: Vec<_> = inbox(&mut connection, account, None, 9).await.unwrap();
    assert_eq!(
        read.iter().map(|entry| entry.read_at.is_some()).collect::<Vec<_>>(),
        [true, false, false, false, false]
    );
}

#[tokio::test]
async fn an_inbox_holds_announcements_and_what_a_newer_release_wrote() {
    let world = World::new().await;
    let (account, _) = world.account_at("alice@a.example").await;
    let mut connection = world.connect().await;
    let announcement = world.draft(false).await;
    send_announcement(&mut connection, &world.recorder, announcement, &mut |_| ()).await.unwrap().committed();
    let entries = inbox(&mut connection, account, None, 9).await.unwrap();
    let (subject, text) = ("News".to_owned(), "There are news.".to_owned());
    assert_eq!(entries[0].says, InboxText::Announcement { announcement, subject, text });
    assert_eq!(world.notification(entries[0].id).await, None, "it has a channel of its own");

    let newer = "insert into postrider_identity.notifications (id, account_id, kind) values (postrider_identity.uuid_v7(), $1, 'of_a_newer_release')";
    sqlx::query(newer).bind(account).execute(&mut connection).await.unwrap();
    let entries = inbox(&mut connection, account, None, 9).await.unwrap();
    assert!(entries.len() == 2 && entries.iter().any(|entry| entry.says == InboxText::OfANewerRelease), "{entries:?}");
}
