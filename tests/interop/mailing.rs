//! The mail channels end to end: from the reference domain's tables to mailboxes beside Postfix, by login over TLS.

use std::collections::BTreeSet;
use std::sync::Arc;

use postrider::channels::{Announcement, Email};
use postrider::identity::{
    AccountId, AnnouncementDraft, ReferenceDirectory, add_address, create_account, draft_announcement,
    request_verification, send_announcement, set_announcements, verify_address,
};
use postrider::{Channel, Channels, Recorder};

use crate::email_world::{PAGES, World};
use crate::reader::{Read, Reader};
use crate::relay::Relaying;
use crate::support::eventually;
use crate::world::SOON;

/// An identity provider whose mail goes through Postfix.
struct Site {
    world: World,
    relaying: Relaying,
    channels: Channels,
    recorder: Recorder,
}

impl Site {
    async fn new() -> Self {
        let directory = Arc::new(ReferenceDirectory);
        let (world, relaying) = (World::new(directory.clone()).await, Relaying::new().await);
        let mailer = || world.mailer(Some(relaying.smtp()));
        let email = Email::new(directory.clone(), world.links.clone(), mailer());
        let announcement = Announcement::new(directory, world.links.clone(), mailer());
        let channels: Vec<Arc<dyn Channel>> = vec![Arc::new(email), Arc::new(announcement)];
        let channels = Channels::new(channels).unwrap();
        Self { world, relaying, recorder: Recorder::new(channels.clone()), channels }
    }

    /// An account whose link to this address was asked for.
    async fn joins(&self, handle: &str, address: &str) -> AccountId {
        let (mut connection, keys) = (self.world.connect().await, &self.world.links.keys);
        let account = create_account(&mut connection, handle).await.unwrap();
        let address = add_address(&mut connection, &self.recorder, account, address).await.unwrap().committed();
        request_verification(&mut connection, &self.recorder, keys, address).await.unwrap().committed();
        account
    }

    /// The same, and the link was followed before it was sent.
    async fn joins_verified(&self, handle: &str, address: &str) -> AccountId {
        let account = self.joins(handle, address).await;
        let mut connection = self.world.connect().await;
        let added = postrider::identity::addresses(&mut connection, account).await.unwrap().remove(0);
        let token = self.world.links.keys.verification_token(added.id);
        verify_address(&mut connection, token.as_str()).await.unwrap();
        account
    }

    /// Sends an announcement to everybody; how many get it by e-mail.
    async fn announces(&self, subject: &str, text: &str) -> u64 {
        let mut transaction = self.world.database.pool().begin().await.unwrap();
        let draft = AnnouncementDraft { subject, text, essential: false, created_by: "root" };
        let announcement = draft_announcement(&mut transaction, &draft).await.unwrap();
        let sent = send_announcement(&mut transaction, &self.recorder, announcement, &mut |_| ()).await.unwrap();
        transaction.commit().await.unwrap();
        sent.committed().mailed()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_link_that_arrives_through_postfix_verifies_the_address() {
    let site = Site::new().await;
    let account = site.joins("björn", "björn.ünal@mail.test").await;
    let subsystem = site.world.start_with(site.channels.clone()).await;
    let delivered = site.relaying.postfix.messages("björn.ünal@mail.test", 1).await;
    site.world.settled().await;
    subsystem.shut_down().await;

    let read = Reader::start().read_bytes(&delivered[0]);
    assert_eq!(read.mailbox("from"), ("Example ID", "no-reply@id.example"));
    let link = link(&read, "/email/verify/");
    let verified = verify_address(&mut site.world.connect().await, &link).await.unwrap();
    assert_eq!((verified.account, verified.made_primary), (account, true));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_announcement_reaches_through_postfix_everybody_who_wants_it_once() {
    const READERS: usize = 20;
    const SUBJECT: &str = "新しい利用規約 — from 1 January";
    let site = Site::new().await;
    for number in 0..READERS {
        site.joins_verified(&format!("reader{number}"), &format!("reader{number}@club.test")).await;
    }
    let opted_out = site.joins_verified("silent", "silent@club.test").await;
    assert!(set_announcements(&mut site.world.connect().await, opted_out, false).await.unwrap());
    site.joins("unverified", "unverified@mail.test").await;
    site.joins_verified("nobody", "nobody@mail.test").await;
    site.joins_verified("later", "later@mail.test").await;
    assert_eq!(site.announces(SUBJECT, ". the terms change\n..\n").await, READERS as u64 + 2);

    let subsystem = site.world.start_with(site.channels.clone()).await;
    let last_error = async |status: &'static str| -> Option<String> {
        let find = "select last_error from postrider.deliveries where channel = 'announcement' and status = $1";
        sqlx::query_scalar(find).bind(status).fetch_optional(site.world.database.pool()).await.unwrap().flatten()
    };
    let taken = i64::try_from(READERS).unwrap();
    eventually(SOON, "each was attempted", async || {
        let refused = last_error("failed").await.is_some() && last_error("pending").await.is_some();
        refused && site.world.counts("announcement").await.get("succeeded") == Some(&taken)
    })
    .await;
    subsystem.shut_down().await;
    assert_eq!(last_error("failed").await.as_deref(), Some("550"));
    assert_eq!(last_error("pending").await.as_deref(), Some("450"));

    let delivered = site.relaying.postfix.messages("@club.test", READERS).await;
    let mut reader = Reader::start();
    let mut recipients = BTreeSet::new();
    for message in delivered {
        let read = reader.read_bytes(&message);
        let (_, to) = read.mailbox("to");
        assert!(recipients.insert(to.to_owned()), "{to} has it twice");
        assert!(read.value("subject").contains(SUBJECT), "{read:?}");
        assert!(read.text().contains(". the terms change"), "{read:?}");
        assert_eq!(read.value("list-unsubscribe-post"), "List-Unsubscribe=One-Click");
        let token = link(&read, "/unsubscribe/");
        assert_eq!(read.value("list-unsubscribe"), format!("<{PAGES}/unsubscribe/{token}>"), "as in the body");
    }
    assert_eq!(recipients, (0..READERS).map(|number| format!("reader{number}@club.test")).collect());
}

/// The token of the text's one link to a page.
fn link(read: &Read, page: &str) -> String {
    let start = format!("{PAGES}{page}");
    let mut links = read.text().split_whitespace().filter_map(|word| word.strip_prefix(&start));
    let token = links.next().unwrap_or_else(|| panic!("no {page} in {read:?}"));
    assert_eq!(links.next(), None);
    token.to_owned()
}
