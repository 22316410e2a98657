//! Notifications by e-mail: what the inbox says, copied when it was written.

use std::collections::BTreeMap;
use std::time::Duration;

use postrider::directory::{Notice, SecuringStep};
use postrider::identity::{remove_address, replace_address, use_recovery};

use crate::idp::Idp;

/// How many messages each address got.
fn arrived(idp: &Idp) -> BTreeMap<String, usize> {
    let mut arrived = BTreeMap::new();
    idp.mailbox.received().into_iter().for_each(|received| *arrived.entry(received.to).or_default() += 1);
    arrived
}

fn once(addresses: &[&str]) -> BTreeMap<String, usize> {
    addresses.iter().map(|address| ((*address).to_owned(), 1)).collect()
}

#[tokio::test]
async fn that_an_account_was_secured_goes_to_every_verified_address_once() {
    let idp = Idp::new().await;
    let (account, _) = idp.account_with_address("ada").await;
    idp.verified(account, "second@rcpt.example").await;
    idp.unverified(account, "unverified@rcpt.example").await;
    let done = vec![SecuringStep::SessionsEnded, SecuringStep::PasskeysRemoved];
    let notification = idp.notify(account, &Notice::AccountSecured { done }).await;
    idp.deliver().await;
    assert_eq!(arrived(&idp), once(&["ada@rcpt.example", "second@rcpt.example"]));
    let mail = idp.only_mail("second@rcpt.example");
    assert!(
        mail.text.contains(&idp.links.pages.notification(notification)) && mail.text.contains("signed out"),
        "{mail:?}"
    );
}

#[tokio::test]
async fn that_an_account_was_recovered_tells_how_to_undo_it_while_that_is_possible() {
    for undoable_for in [None, Some(Duration::from_secs(3600))] {
        let idp = Idp::new().await;
        let (account, _) = idp.account_with_address("ada").await;
        idp.verified(account, "second@rcpt.example").await;
        let recovery = idp.ask_to_recover(account).await;
        let token = idp.links.keys.recovery_token(recovery);
        let (mut connection, recorder) = (idp.connect().await, idp.recorder());
        use_recovery(&mut connection, &recorder, token.as_str(), undoable_for).await.unwrap().committed();
        idp.deliver().await;
        assert_eq!(arrived(&idp), once(&["ada@rcpt.example", "second@rcpt.example"]));
        let undo = idp.links.pages.undo(recovery);
        assert_eq!(idp.only_mail("second@rcpt.example").text.contains(&undo), undoable_for.is_some());
    }
}

#[tokio::test]
async fn that_an_address_was_replaced_or_removed_goes_to_that_address() {
    let idp = Idp::new().await;
    let (account, primary) = idp.account_with_address("ada").await;
    let second = idp.verified(account, "second@rcpt.example").await;
    let (mut connection, recorder) = (idp.connect().await, idp.recorder());
    remove_address(&mut connection, &recorder, second).await.unwrap().committed();
    replace_address(&mut connection, &recorder, primary, "new@rcpt.example").await.unwrap().committed();
    idp.deliver().await;
    assert_eq!(idp.only_mail("second@rcpt.example").field("Subject").map(|s| s.contains("removed")), Some(true));
    assert_eq!(idp.only_mail("ada@rcpt.example").field("Subject").map(|s| s.contains("replaced")), Some(true));
}

#[tokio::test]
async fn any_other_notice_goes_to_the_primary_verified_address_or_to_none() {
    let notices = [
        Notice::PasskeyAdded { name: "Blue key".into() },
        Notice::PasskeyRemoved { name: "Blue key".into() },
        Notice::NewSignIn { device: "Firefox on Debian".into() },
        Notice::AddressAdded,
        Notice::Alert { title: "Look here".into(), text: "Something happened.".into() },
    ];
    for notice in notices {
        let idp = Idp::new().await;
        let (account, _) = idp.account_with_address("ada").await;
        idp.verified(account, "second@rcpt.example").await;
        let bob = idp.account("bob").await;
        idp.unverified(bob, "bob@rcpt.example").await;
        idp.notify(account, &notice).await;
        idp.notify(bob, &notice).await;
        idp.deliver().await;
        assert_eq!(arrived(&idp), once(&["ada@rcpt.example"]), "{notice:?}");
    }
}

/// Guarantee 2: the address is copied in the event's transaction, and so is what is said.
#[tokio::test]
async fn self_contained_later_changes_alter_no_notice() {
    let idp = Idp::new().await;
    let (account, _) = idp.account_with_address("ada").await;
    idp.notify(account, &Notice::PasskeyAdded { name: "Blue key".into() }).await;
    idp.execute(
        "update postrider_identity.email_addresses set address = 'changed@rcpt.example';
         update postrider_identity.accounts set handle = 'changed';
         delete from postrider_identity.notifications; delete from postrider_identity.accounts",
    )
    .await;
    idp.deliver().await;
    let mail = idp.only_mail("ada@rcpt.example");
    assert!(mail.text.contains("Blue key") && mail.text.contains("ada") && !mail.text.contains("changed"), "{mail:?}");
}

/// Guarantee 1, with mail: rolled back, there is nothing to send.
#[tokio::test]
async fn created_with_the_event_or_not_at_all() {
    let idp = Idp::new().await;
    let (account, _) = idp.account_with_address("ada").await;
    let mut transaction = idp.database.pool().begin().await.unwrap();
    let notice = Notice::PasskeyAdded { name: "Blue key".into() };
    let told = postrider::identity::notify(&mut transaction, &idp.recorder(), account, &notice).await.unwrap();
    assert_eq!(told.deliveries(), 1);
    transaction.rollback().await.unwrap();
    assert!(idp.counts("email").await.is_empty());
}
