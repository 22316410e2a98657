//! A database with the reference domain in it, and a channel that delivers what was recorded to nobody.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use postrider::directory::{Directory, NotificationMail};
use postrider::identity::{
    AccountId, ActError, Acted, AddressId, AnnouncementDraft, AnnouncementId, AnnouncementSent, NotificationId,
    Notified, ReferenceDirectory, add_address, create_account, draft_announcement, request_verification,
    verify_address,
};
use postrider::links::LinkKeys;
use postrider::queue::{Effect, Reads};
use postrider::{Channel, Channels, InvalidDelivery, NewDelivery, Occurred, RecordError, Recorder};
use postrider_actors::{ChannelName, Transport};
use sqlx::{PgConnection, PgPool};

use crate::link_tokens::keys;
use crate::support::{self, TestDatabase};

pub struct World {
    pub database: TestDatabase,
    pub keys: LinkKeys,
    pub recorder: Recorder,
    mails: Arc<Mutex<Vec<NotificationMail>>>,
}

impl World {
    pub async fn new() -> Self {
        let mails = Arc::default();
        let announcement: Arc<dyn Channel> = Arc::new(Announcements { page: 1000 });
        let channels = Channels::new(vec![announcement, Arc::new(Notices(Arc::clone(&mails)))]).unwrap();
        Self { database: support::database().await, keys: keys(&[1]), recorder: Recorder::new(channels), mails }
    }

    pub fn pool(&self) -> &PgPool {
        self.database.pool()
    }

    pub async fn connect(&self) -> PgConnection {
        self.database.connect().await
    }

    pub async fn account(&self, handle: &str) -> AccountId {
        create_account(&mut self.connect().await, handle).await.unwrap()
    }

    /// An account with this verified address, which is its primary one.
    pub async fn account_at(&self, address: &str) -> (AccountId, AddressId) {
        let account = self.account(address).await;
        (account, self.verified(account, address).await)
    }

    pub async fn unverified(&self, account: AccountId, address: &str) -> AddressId {
        add_address(&mut self.connect().await, &self.recorder, account, address).await.unwrap().committed()
    }

    /// Adds an address, asks for its link and follows it.
    pub async fn verified(&self, account: AccountId, address: &str) -> AddressId {
        let id = self.unverified(account, address).await;
        self.request(id).await.unwrap();
        let verified = verify_address(&mut self.connect().await, &self.token(id)).await.unwrap();
        assert_eq!((verified.account, verified.address, verified.again), (account, id, false));
        self.forget();
        id
    }

    pub async fn request(&self, address: AddressId) -> Result<(), ActError> {
        request_verification(&mut self.connect().await, &self.recorder, &self.keys, address).await.map(Acted::committed)
    }

    pub fn token(&self, address: AddressId) -> String {
        self.keys.verification_token(address).as_str().to_owned()
    }

    pub async fn draft(&self, essential: bool) -> AnnouncementId {
        let draft = AnnouncementDraft { subject: "News", text: "There are news.", essential, created_by: "root" };
        draft_announcement(&mut self.connect().await, &draft).await.unwrap()
    }

    /// What was notified of since last asked, as the e-mail channel reads it in the same transaction.
    pub fn mails(&self) -> Vec<NotificationMail> {
        std::mem::take(&mut self.mails.lock().unwrap())
    }

    pub fn forget(&self) {
        self.mails.lock().unwrap().clear();
    }

    /// The one notification since last asked: what it says and where it goes, in the order of the addresses' ids.
    pub fn mail(&self) -> NotificationMail {
        let mut mails = self.mails();
        assert_eq!(mails.len(), 1, "{mails:?}");
        mails.remove(0)
    }

    /// Until a session of this database waits for a lock.
    pub async fn somebody_waits(&self) {
        let waiting = "select exists (select from pg_stat_activity
                                       where datname = current_database() and wait_event_type = 'Lock')";
        support::eventually(Duration::from_secs(20), "somebody waits for a lock", async || {
            sqlx::query_scalar::<_, bool>(waiting).fetch_one(self.pool()).await.unwrap()
        })
        .await;
    }

    pub async fn count(&self, from: &'static str) -> i64 {
        sqlx::query_scalar(sqlx::AssertSqlSafe(format!("select count(*) from {from}")))
            .fetch_one(self.pool())
            .await
            .unwrap()
    }

    pub async fn execute(&self, statement: String) {
        sqlx::query(sqlx::AssertSqlSafe(statement)).execute(self.pool()).await.unwrap();
    }

    pub async fn events(&self, kind: &str) -> Vec<serde_json::Value> {
        sqlx::query_scalar("select payload from postrider.events where kind = $1 order by id")
            .bind(kind)
            .fetch_all(self.pool())
            .await
            .unwrap()
    }

    pub async fn notification(&self, notification: NotificationId) -> Option<NotificationMail> {
        ReferenceDirectory.notification(&mut self.connect().await, notification).await.unwrap()
    }
}

pub fn texts(mail: &NotificationMail) -> Vec<&str> {
    mail.addressees.iter().map(|addressee| addressee.address.as_str()).collect()
}

/// Reads notifications as the e-mail channel does, and keeps what it read.
struct Notices(Arc<Mutex<Vec<NotificationMail>>>);

#[async_trait]
impl Channel for Notices {
    fn name(&self) -> ChannelName {
        "email".parse().unwrap()
    }

    fn max_age(&self) -> Duration {
        Duration::from_secs(86_400)
    }

    async fn deliveries(
        &self,
        connection: &mut PgConnection,
        event: &Occurred<'_>,
    ) -> Result<Vec<NewDelivery>, RecordError> {
        let Some(notified) = event.of::<Notified>() else { return Ok(Vec::new()) };
        let mail = ReferenceDirectory.notification(connection, notified.notification).await?.unwrap();
        assert_eq!(mail.account, notified.account);
        self.0.lock().unwrap().push(mail);
        Ok(Vec::new())
    }

    fn transport(&self, _: &Reads) -> Arc<dyn Transport<Effect>> {
        unreachable!("nothing is sent")
    }
}

/// Pages through the recipients of an announcement as its channel does.
pub struct Announcements {
    pub page: u32,
}

#[async_trait]
impl Channel for Announcements {
    fn name(&self) -> ChannelName {
        "announcement".parse().unwrap()
    }

    fn max_age(&self) -> Duration {
        Duration::from_secs(86_400)
    }

    async fn deliveries(&self, _: &mut PgConnection, _: &Occurred<'_>) -> Result<Vec<NewDelivery>, RecordError> {
        Ok(Vec::new())
    }

    async fn page(
        &self,
        connection: &mut PgConnection,
        event: &Occurred<'_>,
        after: Option<uuid::Uuid>,
    ) -> Result<Option<postrider::channel::Page>, RecordError> {
        let Some(AnnouncementSent { announcement }) = event.of() else { return Ok(None) };
        let after = after.map(AccountId);
        let page = ReferenceDirectory.announcement_recipients(connection, *announcement, after, self.page).await?;
        assert!(page.len() <= self.page as usize);
        let Some(last) = page.last().map(|account| account.0) else { return Ok(None) };
        let delivery = |account: AccountId| {
            let about = NewDelivery::new(account.to_string(), account.to_string(), &announcement)?;
            about.about(announcement.to_string())
        };
        let deliveries = page.into_iter().map(delivery).collect::<Result<_, InvalidDelivery>>()?;
        Ok(Some(postrider::channel::Page { deliveries, last }))
    }

    fn transport(&self, _: &Reads) -> Arc<dyn Transport<Effect>> {
        unreachable!("nothing is sent")
    }
}
