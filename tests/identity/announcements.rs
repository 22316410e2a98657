//! Announcements.

use postrider::directory::Directory;
use postrider::identity::{
    AccountId, AccountState, ActError, AnnouncementDraft, AnnouncementId, Missing, Reach, ReferenceDirectory,
    draft_announcement, preview_announcement, replace_address, send_announcement, set_announcements, set_state,
    wants_announcements,
};

use crate::world::World;

impl World {
    async fn send(&self, announcement: AnnouncementId) -> Result<Reach, ActError> {
        let mut transaction = self.pool().begin().await.unwrap();
        let sent = send_announcement(&mut transaction, &self.recorder, announcement, &mut |_| ()).await?;
        transaction.commit().await.unwrap();
        Ok(sent.committed())
    }

    /// Those whom a delivery is written for.
    async fn mailed(&self, announcement: AnnouncementId) -> Vec<AccountId> {
        sqlx::query_scalar("select owner::uuid from postrider.deliveries where subject = $1 order by owner")
            .bind(announcement.to_string())
            .fetch_all(self.pool())
            .await
            .unwrap()
    }

    async fn has_mail(&self, announcement: AnnouncementId, account: AccountId) -> bool {
        let mut connection = self.connect().await;
        ReferenceDirectory.announcement(&mut connection, announcement, account).await.unwrap().is_some()
    }

    async fn state(&self, account: AccountId, state: AccountState) {
        set_state(&mut self.connect().await, account, state).await.unwrap();
    }

    async fn opts(&self, account: AccountId, wanted: bool) -> bool {
        set_announcements(&mut self.connect().await, account, wanted).await.unwrap()
    }
}

#[tokio::test]
async fn an_announcement_is_in_every_active_accounts_inbox_and_mailed_to_those_who_have_an_address_and_want_it() {
    for essential in [false, true] {
        let world = World::new().await;
        let (one, _) = world.account_at("one@a.example").await;
        let (two, _) = world.account_at("two@a.example").await;
        let (opted_out, _) = world.account_at("opted-out@a.example").await;
        let (disabled, _) = world.account_at("disabled@a.example").await;
        let (closed, _) = world.account_at("closed@a.example").await;
        let without = world.account("without").await;
        world.unverified(without, "unverified@a.example").await;
        let without_and_out = world.account("without and out").await;
        assert!(world.opts(opted_out, false).await && world.opts(without_and_out, false).await);
        world.state(disabled, AccountState::Disabled).await;
        world.state(closed, AccountState::Closed).await;

        let announcement = world.draft(essential).await;
        let expected = Reach { recipients: 5, without_address: 2, opted_out: u64::from(!essential) };
        let preview = preview_announcement(&mut world.connect().await, announcement).await.unwrap();
        assert_eq!(preview, expected);
        assert_eq!(world.count("postrider_identity.notifications").await, 0, "a preview writes nothing");
        assert_eq!(world.send(announcement).await.unwrap(), expected);
        assert_eq!(expected.mailed(), if essential { 3 } else { 2 });

        let mut mailed = vec![one, two];
        mailed.extend(essential.then_some(opted_out));
        mailed.sort();
        assert_eq!(world.mailed(announcement).await, mailed);
        let inboxes: Vec<AccountId> =
            sqlx::query_scalar("select account_id from postrider_identity.notifications order by account_id")
                .fetch_all(world.pool())
                .await
                .unwrap();
        let mut all = vec![one, two, opted_out, without, without_and_out];
        all.sort();
        assert_eq!(inboxes, all);
        assert_eq!(world.events("announcement_sent").await, [serde_json::json!({ "announcement": announcement })]);
    }
}

#[tokio::test]
async fn a_sent_announcement_never_changes_and_is_never_sent_again() {
    let world = World::new().await;
    world.account_at("one@a.example").await;
    let announcement = world.draft(false).await;
    let correct = "update postrider_identity.announcements set subject = 'Good news', essential = false";
    sqlx::query(correct).execute(world.pool()).await.unwrap();
    world.send(announcement).await.unwrap();
    for change in [
        "update postrider_identity.announcements set subject = 'other'",
        "update postrider_identity.announcements set text = 'other'",
        "update postrider_identity.announcements set essential = true",
        "update postrider_identity.announcements set sent_at = null",
        "update postrider_identity.announcements set sent_at = now() + interval '1 hour'",
        "update postrider_identity.announcements set id = gen_random_uuid()",
        "delete from postrider_identity.announcements",
    ] {
        assert!(sqlx::query(change).execute(world.pool()).await.is_err(), "{change}");
    }
    assert!(matches!(world.send(announcement).await, Err(ActError::AlreadySent)));
    let preview = preview_announcement(&mut world.connect().await, announcement).await;
    assert!(matches!(preview, Err(ActError::AlreadySent)));
    let nothing = AnnouncementId(uuid::Uuid::now_v7());
    assert!(matches!(world.send(nothing).await, Err(ActError::NoSuch(Missing::Announcement))));
    assert_eq!(
        (world.count("postrider_identity.notifications").await, world.count("postrider.deliveries").await),
        (1, 1)
    );
}

#[tokio::test]
async fn an_announcement_that_two_send_at_once_goes_out_once() {
    let world = World::new().await;
    world.account_at("one@a.example").await;
    let announcement = world.draft(false).await;
    let mut first = world.pool().begin().await.unwrap();
    send_announcement(&mut first, &world.recorder, announcement, &mut |_| ()).await.unwrap().committed();
    let (pool, recorder) = (world.pool().clone(), world.recorder.clone());
    let second = tokio::spawn(async move {
        let mut connection = pool.acquire().await.unwrap();
        send_announcement(&mut connection, &recorder, announcement, &mut |_| ()).await.map(|sent| sent.committed())
    });
    world.somebody_waits().await;
    first.commit().await.unwrap();
    assert!(matches!(second.await.unwrap(), Err(ActError::AlreadySent)));
    assert_eq!(world.count("postrider.deliveries").await, 1);
}

/// Locked first, or waited for and then seen.
#[tokio::test]
async fn an_account_that_is_disabled_while_an_announcement_is_sent_is_a_recipient_or_not_and_never_half() {
    let world = World::new().await;
    let (account, _) = world.account_at("one@a.example").await;
    world.account_at("two@a.example").await;
    let announcement = world.draft(false).await;
    let mut disabling = world.pool().begin().await.unwrap();
    set_state(&mut disabling, account, AccountState::Disabled).await.unwrap();
    let (pool, recorder) = (world.pool().clone(), world.recorder.clone());
    let sending = tokio::spawn(async move {
        let mut transaction = pool.begin().await.unwrap();
        let sent = send_announcement(&mut transaction, &recorder, announcement, &mut |_| ()).await.unwrap();
        transaction.commit().await.unwrap();
        sent.committed()
    });
    world.somebody_waits().await;
    disabling.commit().await.unwrap();
    assert_eq!(sending.await.unwrap().recipients, 1);

    world.state(account, AccountState::Active).await;
    let again = world.draft(false).await;
    let mut sending = world.pool().begin().await.unwrap();
    let sent = send_announcement(&mut sending, &world.recorder, again, &mut |_| ()).await.unwrap();
    assert_eq!(sent.value.recipients, 2);
    let pool = world.pool().clone();
    let disabling = tokio::spawn(async move {
        set_state(&mut pool.acquire().await.unwrap(), account, AccountState::Disabled).await.unwrap()
    });
    world.somebody_waits().await;
    sending.commit().await.unwrap();
    assert!(disabling.await.unwrap());
    assert!(!world.has_mail(again, account).await, "read when it is sent");
}

/// Read when it is sent, whatever became of the recipient meanwhile.
#[tokio::test]
async fn an_announcement_has_a_mail_only_while_its_recipient_can_and_wants_to_have_it() {
    for essential in [false, true] {
        let world = World::new().await;
        let (account, address) = world.account_at("one@a.example").await;
        let (late, _) = (world.account("late").await, ());
        let announcement = world.draft(essential).await;
        world.send(announcement).await.unwrap();
        let mut connection = world.connect().await;
        let mail = ReferenceDirectory.announcement(&mut connection, announcement, account).await.unwrap().unwrap();
        assert_eq!((mail.address.as_str(), mail.handle.as_str()), ("one@a.example", "one@a.example"));
        assert_eq!((mail.subject.as_str(), mail.text.as_str(), mail.essential), ("News", "There are news.", essential));
        let in_inbox: bool = sqlx::query_scalar(
            "select exists (select from postrider_identity.notifications where id = $1 and account_id = $2)",
        )
        .bind(mail.notification)
        .bind(account)
        .fetch_one(&mut connection)
        .await
        .unwrap();
        assert!(in_inbox);

        ReferenceDirectory.unsubscribe(&mut connection, account).await.unwrap();
        assert_eq!(world.has_mail(announcement, account).await, essential, "opted out since");
        world.opts(account, true).await;
        for state in [AccountState::Disabled, AccountState::Closed] {
            world.state(account, state).await;
            assert!(!world.has_mail(announcement, account).await, "{state:?}");
        }
        world.state(account, AccountState::Active).await;
        assert!(world.has_mail(announcement, account).await);
        replace_address(&mut connection, &world.recorder, address, "new@a.example").await.unwrap().committed();
        assert!(!world.has_mail(announcement, account).await, "no primary address");

        world.verified(late, "late@a.example").await;
        assert!(world.has_mail(announcement, late).await, "it goes to whatever address a recipient has");
        let (stranger, _) = world.account_at("stranger@a.example").await;
        assert!(!world.has_mail(announcement, stranger).await, "never a recipient");
    }
}

#[tokio::test]
async fn opting_out_is_one_change_however_often_it_is_done() {
    let world = World::new().await;
    let account = world.account("alice").await;
    let mut connection = world.connect().await;
    assert!(wants_announcements(&mut connection, account).await.unwrap());
    let changed = "select changed_at::text from postrider_identity.email_preferences";
    let mut first: Option<String> = None;
    for _ in 0..3 {
        ReferenceDirectory.unsubscribe(&mut connection, account).await.unwrap();
        let at: String = sqlx::query_scalar(changed).fetch_one(&mut connection).await.unwrap();
        assert_eq!(first.get_or_insert_with(|| at.clone()), &at, "no further change");
        assert!(!wants_announcements(&mut connection, account).await.unwrap());
    }
    assert!(world.opts(account, true).await && !world.opts(account, true).await);
    assert!(wants_announcements(&mut connection, account).await.unwrap());
    let nobody = AccountId(uuid::Uuid::now_v7());
    ReferenceDirectory.unsubscribe(&mut connection, nobody).await.unwrap();
    assert!(!world.opts(nobody, false).await, "an account that is gone is no error");
}

#[tokio::test]
async fn an_announcement_that_nobody_could_read_is_not_written() {
    let world = World::new().await;
    let mut connection = world.connect().await;
    let fit = AnnouncementDraft { subject: "S", text: "One.\r\n\n\tTwo.", essential: false, created_by: "root" };
    draft_announcement(&mut connection, &fit).await.unwrap();
    let (long_subject, long_text) = ("é".repeat(201), "a".repeat(65_537));
    for (subject, text) in [
        ("", "text"),
        (" ", "text"),
        ("two\nlines", "text"),
        ("two\r\nBcc: lines", "text"),
        ("nul\0", "text"),
        (&long_subject, "text"),
        ("subject", ""),
        ("subject", " \n "),
        ("subject", "nul\0"),
        ("subject", "esc\u{1b}[1m"),
        ("subject", &long_text),
    ] {
        let refused = draft_announcement(&mut connection, &AnnouncementDraft { subject, text, ..fit }).await;
        assert!(matches!(refused, Err(ActError::Unfit)), "{subject:?}");
    }
    assert!(matches!(
        draft_announcement(&mut connection, &AnnouncementDraft { created_by: "", ..fit }).await,
        Err(ActError::Unfit)
    ));
    let longest = "é".repeat(200);
    draft_announcement(&mut connection, &AnnouncementDraft { subject: &longest, ..fit }).await.unwrap();
}
