//! An identity provider on the reference domain.

use std::ops::Deref;
use std::sync::Arc;

use postrider::directory::Notice;
use postrider::identity::{
    AccountId, AddressId, AnnouncementDraft, AnnouncementId, NotificationId, Reach, RecoveryId, ReferenceDirectory,
    add_address, create_account, draft_announcement, notify, request_recovery, request_verification, send_announcement,
    verify_address,
};
use sqlx::AssertSqlSafe;

use crate::world::World;

pub struct Idp(World);

impl Deref for Idp {
    type Target = World;

    fn deref(&self) -> &World {
        &self.0
    }
}

impl Idp {
    pub async fn new() -> Self {
        Self(World::new(Arc::new(ReferenceDirectory)).await)
    }

    pub async fn account(&self, handle: &str) -> AccountId {
        create_account(&mut self.connect().await, handle).await.unwrap()
    }

    /// An address that is not verified, and for which no link is on its way.
    pub async fn unverified(&self, account: AccountId, address: &str) -> AddressId {
        let added = self.unverified_beside(account, address).await;
        self.forget().await;
        added
    }

    /// The same, leaving alone what is on its way.
    pub async fn unverified_beside(&self, account: AccountId, address: &str) -> AddressId {
        add_address(&mut self.connect().await, &self.recorder(), account, address).await.unwrap().committed()
    }

    /// An address that is verified, the primary one if it is the first; its link is on its way no more.
    pub async fn verified(&self, account: AccountId, address: &str) -> AddressId {
        let id = self.unverified(account, address).await;
        self.ask_to_verify(id).await;
        let token = self.links.keys.verification_token(id);
        verify_address(&mut self.connect().await, token.as_str()).await.unwrap();
        self.forget().await;
        id
    }

    /// An account whose primary address is `handle` at rcpt.example.
    pub async fn account_with_address(&self, handle: &str) -> (AccountId, AddressId) {
        let account = self.account(handle).await;
        (account, self.verified(account, &format!("{handle}@rcpt.example")).await)
    }

    pub async fn ask_to_verify(&self, address: AddressId) {
        let (recorder, keys) = (self.recorder(), &self.links.keys);
        request_verification(&mut self.connect().await, &recorder, keys, address).await.unwrap().committed();
    }

    pub async fn ask_to_recover(&self, account: AccountId) -> RecoveryId {
        let (recorder, keys) = (self.recorder(), &self.links.keys);
        request_recovery(&mut self.connect().await, &recorder, keys, account).await.unwrap().committed()
    }

    pub async fn notify(&self, account: AccountId, notice: &Notice) -> NotificationId {
        notify(&mut self.connect().await, &self.recorder(), account, notice).await.unwrap().committed()
    }

    pub async fn announce(&self, subject: &str, essential: bool) -> (AnnouncementId, Reach) {
        let mut transaction = self.database.pool().begin().await.unwrap();
        let draft = AnnouncementDraft { subject, text: "It is so.", essential, created_by: "a test" };
        let announcement = draft_announcement(&mut transaction, &draft).await.unwrap();
        let sent = send_announcement(&mut transaction, &self.recorder(), announcement, &mut |_| ()).await.unwrap();
        transaction.commit().await.unwrap();
        (announcement, sent.committed())
    }

    pub async fn execute(&self, statement: impl Into<String>) {
        sqlx::raw_sql(AssertSqlSafe(statement.into())).execute(self.database.pool()).await.unwrap();
    }

    /// Deletes what is on its way.
    pub async fn forget(&self) {
        self.execute("delete from postrider.deliveries").await;
    }
}
