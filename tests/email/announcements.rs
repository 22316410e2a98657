//! Announcements: one e-mail for each recipient, read when it is sent, and never in the way of others.

use std::collections::BTreeSet;

use postrider::identity::{AccountState, delete_account, set_announcements, set_state};

use crate::idp::Idp;
use crate::support::eventually;
use crate::world::{Mail, SOON};

#[tokio::test]
async fn an_announcement_leaves_out_those_who_opted_out_unless_it_is_essential() {
    for essential in [false, true] {
        let idp = Idp::new().await;
        let (_, _) = idp.account_with_address("ada").await;
        let (out, _) = idp.account_with_address("out").await;
        let (since, _) = idp.account_with_address("since").await;
        let (gone, _) = idp.account_with_address("gone").await;
        let (disabled, _) = idp.account_with_address("disabled").await;
        let bare = idp.account("bare").await;
        idp.unverified(bare, "bare@rcpt.example").await;
        let mut connection = idp.connect().await;
        set_announcements(&mut connection, out, false).await.unwrap();
        let (_, reach) = idp.announce("News", essential).await;
        let opted_out = u64::from(!essential);
        assert_eq!((reach.recipients, reach.without_address, reach.opted_out), (6, 1, opted_out));
        assert_eq!(idp.counts("announcement").await["pending"] as u64, reach.mailed());
        // Between commit and send.
        set_announcements(&mut connection, since, false).await.unwrap();
        set_state(&mut connection, disabled, AccountState::Disabled).await.unwrap();
        idp.execute(format!(
            "update postrider_identity.email_addresses set is_primary = false, removed_at = now() where account_id = '{gone}'"
        ))
        .await;
        idp.deliver().await;
        let arrived: BTreeSet<String> = idp.mailbox.received().into_iter().map(|one| one.to).collect();
        let expected: &[&str] = if essential { &["ada", "out", "since"] } else { &["ada"] };
        let expected: BTreeSet<String> = expected.iter().map(|handle| format!("{handle}@rcpt.example")).collect();
        assert_eq!(arrived, expected, "essential: {essential}");
        assert_eq!(idp.counts("announcement").await["succeeded"] as u64, reach.mailed());
    }
}

#[tokio::test]
async fn c22_each_recipient_has_a_one_click_link_of_their_own_and_an_essential_one_none() {
    let idp = Idp::new().await;
    let mut links = BTreeSet::new();
    for handle in ["ada", "bob", "cyd"] {
        let (account, _) = idp.account_with_address(handle).await;
        links.insert((
            format!("{handle}@rcpt.example"),
            idp.links.pages.unsubscribe(&idp.links.keys.unsubscribe_token(account)),
        ));
    }
    idp.announce("News", false).await;
    idp.deliver().await;
    let news = idp.mailbox.received();
    idp.announce("Terms", true).await;
    idp.deliver().await;
    let read: Vec<(String, Mail)> = news.iter().map(|one| (one.to.clone(), Mail::read(one))).collect();
    let found: BTreeSet<(String, String)> = read
        .iter()
        .map(|(to, mail)| {
            assert_eq!(mail.field("List-Unsubscribe-Post").as_deref(), Some("List-Unsubscribe=One-Click"));
            let link = mail.field("List-Unsubscribe").unwrap().trim_matches(['<', '>']).to_owned();
            assert!(mail.text.contains(&link), "in the body too");
            (to.clone(), link)
        })
        .collect();
    assert_eq!(found, links);
    let essential = &idp.mailbox.received()[3..];
    assert_eq!(essential.len(), 3);
    for one in essential {
        let mail = Mail::read(one);
        assert!(mail.field("List-Unsubscribe").is_none() && !mail.text.contains("/unsubscribe/"), "{mail:?}");
    }
}

/// c25: one recipient whom the relay refuses fails alone.
#[tokio::test]
async fn c25_a_refused_recipient_never_fails_the_others() {
    let idp = Idp::new().await;
    for handle in ["ada", "bob", "cyd", "dan"] {
        idp.account_with_address(handle).await;
    }
    idp.mailbox.refuse("bob@rcpt.example", 550);
    idp.announce("News", false).await;
    idp.deliver().await;
    let counts = idp.counts("announcement").await;
    assert_eq!((counts["succeeded"], counts["failed"]), (3, 1));
    let error: String = sqlx::query_scalar("select last_error from postrider.deliveries where status = 'failed'")
        .fetch_one(idp.database.pool())
        .await
        .unwrap();
    assert_eq!(error, "550");
}

#[tokio::test]
async fn a_purged_account_gets_nothing_of_what_was_announced() {
    let idp = Idp::new().await;
    let (ada, _) = idp.account_with_address("ada").await;
    idp.account_with_address("bob").await;
    idp.announce("News", true).await;
    delete_account(&mut idp.connect().await, &idp.recorder(), ada).await.unwrap().committed();
    assert_eq!(idp.counts("announcement").await["pending"], 1);
    idp.deliver().await;
    assert_eq!(idp.mailbox.received().len(), 1);
    idp.only_mail("bob@rcpt.example");
}

/// A hundred thousand announcements wait or are being sent; a verification link goes out beside them.
#[tokio::test]
async fn email_is_never_held_back_by_100_000_announcements() {
    let idp = Idp::new().await;
    idp.execute(
        "insert into postrider_identity.accounts (id, handle)
         select gen_random_uuid(), 'user' || n from generate_series(1, 100000) n;
         insert into postrider_identity.email_addresses (id, account_id, address, is_primary, verified_at)
         select gen_random_uuid(), a.id, a.handle || '@many.example', true, now() from postrider_identity.accounts a;",
    )
    .await;
    let (_, reach) = idp.announce("News", false).await;
    assert_eq!((reach.mailed(), idp.counts("announcement").await["pending"]), (100_000, 100_000));
    let subsystem = idp.start().await;
    eventually(SOON, "announcements are being sent", async || !idp.mailbox.received().is_empty()).await;
    let account = idp.account("late").await;
    let address = idp.unverified_beside(account, "late@rcpt.example").await;
    idp.ask_to_verify(address).await;
    eventually(SOON, "the link has arrived", async || !idp.mailbox.received_by("late@rcpt.example").is_empty()).await;
    let still = idp.counts("announcement").await["pending"];
    assert!(still > 50_000, "{still} announcements still wait: the link overtook them");
    subsystem.shut_down().await;
}
