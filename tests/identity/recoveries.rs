//! Recovering and securing accounts.

use std::time::Duration;

use postrider::directory::{Directory, Notice, SecuringStep};
use postrider::identity::{
    AccountId, AccountState, ActError, AddressId, Missing, Recovered, RecoveryId, ReferenceDirectory, cancel_recovery,
    create_session, make_primary, remove_address, replace_address, request_recovery, secure_account, set_state,
    undo_recovery, use_recovery,
};

use tokio::task::JoinHandle;

use crate::world::{World, texts};

const DAY: Duration = Duration::from_secs(86_400);

impl World {
    async fn recovery(&self, account: AccountId) -> RecoveryId {
        let mut connection = self.connect().await;
        request_recovery(&mut connection, &self.recorder, &self.keys, account).await.unwrap().committed()
    }

    fn recovery_token(&self, recovery: RecoveryId) -> String {
        self.keys.recovery_token(recovery).as_str().to_owned()
    }

    /// Redeems a recovery's link over a connection of its own, so that others may be under way beside it.
    fn redeem(&self, recovery: RecoveryId) -> JoinHandle<Result<Recovered, ActError>> {
        let (pool, recorder, token) = (self.pool().clone(), self.recorder.clone(), self.recovery_token(recovery));
        tokio::spawn(async move {
            use_recovery(&mut pool.acquire().await.unwrap(), &recorder, &token, None).await.map(|used| used.committed())
        })
    }

    async fn open(&self, recovery: RecoveryId, address: AddressId) -> bool {
        let found = ReferenceDirectory.recovery(&mut self.connect().await, recovery, address).await.unwrap();
        found.is_some()
    }

    async fn expire(&self, recovery: RecoveryId) {
        self.execute(format!("update postrider_identity.recoveries set expires_at = now() where id = '{recovery}'"))
            .await;
    }
}

#[tokio::test]
async fn a_recovery_goes_to_the_primary_address_and_works_for_an_hour() {
    let world = World::new().await;
    let (account, address) = world.account_at("alice@a.example").await;
    world.verified(account, "other@a.example").await;
    let recovery = world.recovery(account).await;
    let event = serde_json::json!({ "account": account, "recovery": recovery, "address": address });
    assert_eq!(world.events("recovery_requested").await, [event]);
    let mut connection = world.connect().await;
    let found = ReferenceDirectory.recovery(&mut connection, recovery, address).await.unwrap().unwrap();
    assert_eq!((found.to.address.as_str(), found.to.handle.as_str()), ("alice@a.example", "alice@a.example"));
    assert_eq!(found.to.token_digest, world.keys.recovery_token(recovery).digest());
    let hour = "select $1 - created_at = interval '1 hour' from postrider_identity.recoveries";
    assert!(sqlx::query_scalar::<_, bool>(hour).bind(found.expires_at).fetch_one(&mut connection).await.unwrap());
    let row: String = sqlx::query_scalar("select r::text from postrider_identity.recoveries r")
        .fetch_one(&mut connection)
        .await
        .unwrap();
    assert!(!row.contains(&world.recovery_token(recovery)), "the token is stored nowhere");
}

#[tokio::test]
async fn there_is_no_recovery_without_an_active_account_and_a_primary_address() {
    let world = World::new().await;
    let account = world.account("alice").await;
    let mut connection = world.connect().await;
    let mut request =
        async |whose| request_recovery(&mut connection, &world.recorder, &world.keys, whose).await.unwrap_err();
    assert!(matches!(request(account).await, ActError::NoPrimary));
    world.unverified(account, "alice@a.example").await;
    assert!(matches!(request(account).await, ActError::NoPrimary), "not to an address that nobody verified");
    assert!(matches!(request(AccountId(uuid::Uuid::now_v7())).await, ActError::NoSuch(Missing::Account)));
    set_state(&mut world.connect().await, account, AccountState::Disabled).await.unwrap();
    assert!(matches!(request(account).await, ActError::NotActive));
    assert_eq!(world.count("postrider_identity.recoveries").await, 0);
}

/// Read when it is sent, whatever became of it meanwhile.
#[tokio::test]
async fn a_recovery_link_has_a_recipient_only_while_the_recovery_is_open() {
    let world = World::new().await;
    let (account, address) = world.account_at("alice@a.example").await;
    let other = world.verified(account, "other@a.example").await;
    let mut connection = world.connect().await;

    let first = world.recovery(account).await;
    assert!(world.open(first, address).await);
    assert!(!world.open(first, other).await, "of another address");
    let second = world.recovery(account).await;
    assert!(!world.open(first, address).await, "a later one cancels it");
    cancel_recovery(&mut connection, second).await.unwrap();
    assert!(!world.open(second, address).await, "cancelled");

    let third = world.recovery(account).await;
    for state in [AccountState::Disabled, AccountState::Closed] {
        set_state(&mut connection, account, state).await.unwrap();
        assert!(!world.open(third, address).await, "{state:?}");
    }
    set_state(&mut connection, account, AccountState::Active).await.unwrap();
    assert!(world.open(third, address).await);
    world.expire(third).await;
    assert!(!world.open(third, address).await, "expired by the database's clock");

    let fourth = world.recovery(account).await;
    use_recovery(&mut connection, &world.recorder, &world.recovery_token(fourth), None).await.unwrap().committed();
    assert!(!world.open(fourth, address).await, "used");
    let fifth = world.recovery(account).await;
    replace_address(&mut connection, &world.recorder, address, "new@a.example").await.unwrap().committed();
    assert!(!world.open(fifth, address).await, "the address is gone");
}

#[tokio::test]
async fn a_recovery_is_used_once_ends_every_session_and_tells_every_verified_address() {
    let world = World::new().await;
    let (account, _) = world.account_at("one@a.example").await;
    world.verified(account, "two@a.example").await;
    world.unverified(account, "three@a.example").await;
    let mut connection = world.connect().await;
    create_session(&mut connection, account).await.unwrap();
    create_session(&mut connection, account).await.unwrap();
    let recovery = world.recovery(account).await;
    world.forget();
    let token = world.recovery_token(recovery);
    let recovered = use_recovery(&mut connection, &world.recorder, &token, Some(DAY)).await.unwrap().committed();
    assert_eq!((recovered.account, recovered.recovery, recovered.sessions), (account, recovery, 2));
    let mail = world.mail();
    assert_eq!(mail.notice, Notice::AccountRecovered { undoable: Some(recovery) });
    assert_eq!(texts(&mail), ["one@a.example", "two@a.example"]);
    for event in world.events("session_revoked").await {
        assert_eq!(event["by"], "security");
    }
    let again = use_recovery(&mut connection, &world.recorder, &token, Some(DAY)).await.unwrap_err();
    assert!(matches!(again, ActError::NoSuch(Missing::Recovery)), "{again}");
    assert!(world.mails().is_empty());

    // While a passkey can still undo it, and no longer.
    let id = mail_id(&world).await;
    assert_eq!(world.notification(id).await.unwrap().notice, Notice::AccountRecovered { undoable: Some(recovery) });
    world.execute("update postrider_identity.recoveries set undo_until = now()".into()).await;
    assert_eq!(world.notification(id).await.unwrap().notice, Notice::AccountRecovered { undoable: None });
}

async fn mail_id(world: &World) -> postrider::identity::NotificationId {
    sqlx::query_scalar("select id from postrider_identity.notifications where kind = 'account_recovered'")
        .fetch_one(world.pool())
        .await
        .unwrap()
}

#[tokio::test]
async fn no_token_recovers_what_was_cancelled_expired_or_is_not_active() {
    let world = World::new().await;
    let (account, address) = world.account_at("alice@a.example").await;
    let mut connection = world.connect().await;
    let cancelled = world.recovery(account).await;
    let expired = world.recovery(account).await;
    world.expire(expired).await;
    for recovery in [cancelled, expired] {
        let refused = use_recovery(&mut connection, &world.recorder, &world.recovery_token(recovery), None).await;
        assert!(matches!(refused.unwrap_err(), ActError::NoSuch(Missing::Recovery)));
        let refused = cancel_recovery(&mut connection, recovery).await.unwrap_err();
        assert!(matches!(refused, ActError::NoSuch(Missing::Recovery)));
    }
    let open = world.recovery(account).await;
    let verification = world.keys.verification_token(AddressId(open.0)).as_str().to_owned();
    for token in ["", &verification, &world.token(address), &world.recovery_token(open)[1..]] {
        let refused = use_recovery(&mut connection, &world.recorder, token, None).await.unwrap_err();
        assert!(matches!(refused, ActError::NoSuch(Missing::Link)), "{token}");
    }
    set_state(&mut connection, account, AccountState::Disabled).await.unwrap();
    let refused = use_recovery(&mut connection, &world.recorder, &world.recovery_token(open), None).await.unwrap_err();
    assert!(matches!(refused, ActError::NotActive));
}

#[tokio::test]
async fn two_who_use_one_recovery_at_once_are_one_who_uses_it() {
    let world = World::new().await;
    let (account, _) = world.account_at("alice@a.example").await;
    let recovery = world.recovery(account).await;
    let mut first = world.pool().begin().await.unwrap();
    use_recovery(&mut first, &world.recorder, &world.recovery_token(recovery), None).await.unwrap().committed();
    let second = world.redeem(recovery);
    world.somebody_waits().await;
    first.commit().await.unwrap();
    assert!(matches!(second.await.unwrap(), Err(ActError::NoSuch(Missing::Recovery))));
}

#[tokio::test]
async fn securing_an_account_says_what_was_done_to_every_verified_address() {
    let world = World::new().await;
    let (account, address) = world.account_at("one@a.example").await;
    world.verified(account, "two@a.example").await;
    let mut connection = world.connect().await;
    create_session(&mut connection, account).await.unwrap();
    let recovery = world.recovery(account).await;
    world.forget();
    let more = [SecuringStep::PasskeysRemoved, SecuringStep::SessionsEnded];
    secure_account(&mut connection, &world.recorder, account, &more).await.unwrap().committed();
    let mail = world.mail();
    let done = vec![SecuringStep::SessionsEnded, SecuringStep::RecoveriesCancelled, SecuringStep::PasskeysRemoved];
    assert_eq!(mail.notice, Notice::AccountSecured { done });
    assert_eq!(texts(&mail), ["one@a.example", "two@a.example"]);
    assert!(!world.open(recovery, address).await);
    assert_eq!(world.count("postrider_identity.sessions where revoked_at is null").await, 0);
}

#[tokio::test]
async fn a_recovery_is_undone_once_and_only_while_that_is_possible() {
    let world = World::new().await;
    let (account, _) = world.account_at("alice@a.example").await;
    let mut connection = world.connect().await;
    let open = world.recovery(account).await;
    let undo = async |recovery| {
        undo_recovery(&mut world.connect().await, &world.recorder, recovery).await.map(|undone| undone.committed())
    };
    let refused = |undone: Result<_, ActError>| matches!(undone, Err(ActError::NoSuch(Missing::Recovery)));
    assert!(refused(undo(open).await), "not used yet");
    use_recovery(&mut connection, &world.recorder, &world.recovery_token(open), Some(DAY)).await.unwrap().committed();
    create_session(&mut connection, account).await.unwrap();
    world.forget();
    undo(open).await.unwrap();
    assert_eq!(world.mail().notice, Notice::AccountSecured { done: vec![SecuringStep::SessionsEnded] });
    assert_eq!(world.count("postrider_identity.sessions where revoked_at is null").await, 0, "the way in is closed");
    assert!(refused(undo(open).await), "undone already");
    let without_passkey = world.recovery(account).await;
    let token = world.recovery_token(without_passkey);
    use_recovery(&mut connection, &world.recorder, &token, None).await.unwrap().committed();
    assert!(refused(undo(without_passkey).await));
    assert!(refused(undo(RecoveryId(uuid::Uuid::now_v7())).await));
}

/// Whoever still reads the old address's mail does not get back in.
#[tokio::test]
async fn a_recovery_link_dies_with_the_primary_address_that_it_was_sent_to() {
    for replaced in [true, false] {
        let world = World::new().await;
        let (account, old) = world.account_at("old@a.example").await;
        let other = world.verified(account, "other@a.example").await;
        let recovery = world.recovery(account).await;
        let mut connection = world.connect().await;
        if replaced {
            replace_address(&mut connection, &world.recorder, old, "new@a.example").await.unwrap().committed();
        } else {
            make_primary(&mut connection, other).await.unwrap();
        }
        assert!(!world.open(recovery, old).await, "nothing is sent");
        let refused = world.redeem(recovery).await.unwrap().unwrap_err();
        assert!(matches!(refused, ActError::NoSuch(Missing::Recovery)), "{refused}");
        if replaced {
            make_primary(&mut connection, other).await.unwrap();
        } else {
            remove_address(&mut connection, &world.recorder, old).await.unwrap().committed();
            let restored = world.verified(account, "old@a.example").await;
            make_primary(&mut connection, restored).await.unwrap();
        }
        let refused = world.redeem(recovery).await.unwrap().unwrap_err();
        assert!(matches!(refused, ActError::NoSuch(Missing::Recovery)), "it stays dead: {refused}");
    }
}

/// Requested while the change is under way: it waits, and goes to the new one.
#[tokio::test]
async fn a_recovery_that_is_requested_while_the_primary_address_changes_goes_to_the_new_one() {
    let world = World::new().await;
    let (account, _) = world.account_at("old@a.example").await;
    let new = world.verified(account, "new@a.example").await;
    let mut changing = world.pool().begin().await.unwrap();
    make_primary(&mut changing, new).await.unwrap();
    let (pool, recorder, keys) = (world.pool().clone(), world.recorder.clone(), world.keys.clone());
    let requesting = tokio::spawn(async move {
        let mut requesting = pool.begin().await.unwrap();
        let recovery = request_recovery(&mut requesting, &recorder, &keys, account).await.unwrap();
        requesting.commit().await.unwrap();
        recovery.committed()
    });
    world.somebody_waits().await;
    changing.commit().await.unwrap();
    let recovery = requesting.await.unwrap();
    assert!(world.open(recovery, new).await);
    assert_eq!(world.events("recovery_requested").await[0]["address"], new.to_string());
}

/// A request that saw the old address and commits before the change is seen by it; one whose snapshot is older than the
/// change is found out when it is redeemed.
#[tokio::test]
async fn a_recovery_that_was_requested_on_an_older_snapshot_than_the_change_opens_nothing() {
    let world = World::new().await;
    let (account, old) = world.account_at("old@a.example").await;
    let new = world.verified(account, "new@a.example").await;
    let mut requesting = world.pool().begin_with("begin isolation level repeatable read").await.unwrap();
    sqlx::query("select from postrider_identity.accounts").execute(&mut *requesting).await.unwrap();
    make_primary(&mut world.connect().await, new).await.unwrap();
    let requested = request_recovery(&mut requesting, &world.recorder, &world.keys, account).await.unwrap();
    requesting.commit().await.unwrap();
    let recovery = requested.committed();
    assert_eq!(world.events("recovery_requested").await[0]["address"], old.to_string());
    assert!(!world.open(recovery, old).await && !world.open(recovery, new).await);
    let refused = world.redeem(recovery).await.unwrap().unwrap_err();
    assert!(matches!(refused, ActError::NoSuch(Missing::Recovery)), "{refused}");
}

/// Redeemed while the change is under way: it waits, and is refused; the change while it is redeemed comes after it.
#[tokio::test]
async fn a_recovery_that_is_redeemed_while_the_primary_address_changes_is_refused_once_that_commits() {
    let world = World::new().await;
    let (account, old) = world.account_at("old@a.example").await;
    let recovery = world.recovery(account).await;
    let mut changing = world.pool().begin().await.unwrap();
    replace_address(&mut changing, &world.recorder, old, "new@a.example").await.unwrap().committed();
    let redeeming = world.redeem(recovery);
    world.somebody_waits().await;
    changing.commit().await.unwrap();
    assert!(matches!(redeeming.await.unwrap(), Err(ActError::NoSuch(Missing::Recovery))));
}
