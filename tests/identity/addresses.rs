//! Adding, verifying, replacing and removing addresses.

use postrider::directory::{Directory, Notice};
use postrider::identity::{
    AccountState, ActError, Missing, ReferenceDirectory, add_address, addresses, make_primary, primary, remove_address,
    replace_address, request_verification, set_state, verify_address,
};

use crate::world::{World, texts};

#[tokio::test]
async fn the_first_address_that_is_verified_becomes_the_primary_one() {
    let world = World::new().await;
    let account = world.account("alice").await;
    let (one, two) =
        (world.unverified(account, "one@a.example").await, world.unverified(account, "two@a.example").await);
    let mut connection = world.connect().await;
    assert_eq!(primary(&mut connection, account).await.unwrap(), None, "not before it is verified");
    for (address, made_primary, again) in [(two, true, false), (one, false, false), (two, false, true)] {
        if !again {
            world.request(address).await.unwrap();
        }
        let verified = verify_address(&mut connection, &world.token(address)).await.unwrap();
        assert_eq!((verified.account, verified.address), (account, address));
        assert_eq!((verified.made_primary, verified.again), (made_primary, again));
    }
    assert_eq!(primary(&mut connection, account).await.unwrap(), Some(two));
    let listed = addresses(&mut connection, account).await.unwrap();
    assert_eq!(listed.iter().map(|address| address.id).collect::<Vec<_>>(), [two, one]);
    assert!(!format!("{listed:?}").contains("a.example"), "{listed:?}");
}

#[tokio::test]
async fn a_request_is_one_event_and_its_row_holds_the_digest_and_no_token() {
    let world = World::new().await;
    let account = world.account("alice").await;
    let address = world.unverified(account, "alice@a.example").await;
    world.request(address).await.unwrap();
    world.request(address).await.unwrap();
    let event = serde_json::json!({ "account": account, "address": address });
    assert_eq!(world.events("verification_requested").await, [event.clone(), event]);
    let row: (Vec<u8>, String) =
        sqlx::query_as("select verification_digest, e::text from postrider_identity.email_addresses e")
            .fetch_one(world.pool())
            .await
            .unwrap();
    assert_eq!(row.0, world.keys.verification_token(address).digest().0);
    assert!(!row.1.contains(&world.token(address)));
}

#[tokio::test]
async fn no_link_verifies_an_address_that_is_gone_or_an_account_that_is_not_active() {
    let world = World::new().await;
    let (account, _) = world.account_at("primary@a.example").await;
    let mut connection = world.connect().await;
    let removed = world.unverified(account, "removed@a.example").await;
    let replaced = world.unverified(account, "replaced@a.example").await;
    let other = world.unverified(account, "other@a.example").await;
    for address in [removed, replaced, other] {
        world.request(address).await.unwrap();
    }
    remove_address(&mut connection, &world.recorder, removed).await.unwrap().committed();
    replace_address(&mut connection, &world.recorder, replaced, "new@a.example").await.unwrap().committed();
    for address in [removed, replaced] {
        let refused = verify_address(&mut connection, &world.token(address)).await.unwrap_err();
        assert!(matches!(refused, ActError::NoSuch(Missing::Link)), "{refused}");
        let refused = world.request(address).await.unwrap_err();
        assert!(matches!(refused, ActError::NoSuch(Missing::Address)), "{refused}");
        assert!(matches!(make_primary(&mut connection, address).await, Err(ActError::NoSuch(Missing::Address))));
    }
    for token in ["", "of nobody", &world.token(other)[1..], &format!("{}=", world.token(other))] {
        assert!(
            matches!(verify_address(&mut connection, token).await, Err(ActError::NoSuch(Missing::Link))),
            "{token}"
        );
    }
    for state in [AccountState::Disabled, AccountState::Closed] {
        assert!(set_state(&mut connection, account, state).await.unwrap());
        assert!(!set_state(&mut connection, account, state).await.unwrap(), "no change");
        assert!(matches!(verify_address(&mut connection, &world.token(other)).await, Err(ActError::NotActive)));
        assert!(matches!(world.request(other).await, Err(ActError::NotActive)));
        let added = add_address(&mut connection, &world.recorder, account, "more@a.example").await;
        assert!(matches!(added, Err(ActError::NotActive)));
    }
    set_state(&mut connection, account, AccountState::Active).await.unwrap();
    assert!(!verify_address(&mut connection, &world.token(other)).await.unwrap().again);
}

#[tokio::test]
async fn an_address_is_added_once_in_whatever_case_and_again_when_it_was_removed() {
    let world = World::new().await;
    let (account, _) = world.account_at("primary@a.example").await;
    let first = world.unverified(account, "alice@a.example").await;
    let mut transaction = world.pool().begin().await.unwrap();
    for again in ["alice@a.example", "ALICE@a.example", "Alice@A.EXAMPLE"] {
        let refused = add_address(&mut transaction, &world.recorder, account, again).await;
        assert!(matches!(refused, Err(ActError::AlreadyThere)), "{again}");
    }
    let refused = add_address(&mut transaction, &world.recorder, account, "no address").await.unwrap_err();
    assert!(matches!(refused, ActError::Address(_)));
    assert!(!format!("{refused} {refused:?}").contains("no address"));
    // Refused, but the transaction goes on.
    remove_address(&mut transaction, &world.recorder, first).await.unwrap().committed();
    let second = add_address(&mut transaction, &world.recorder, account, "Alice@a.example").await.unwrap().committed();
    transaction.commit().await.unwrap();
    assert_ne!(first, second, "with an id of its own");
}

#[tokio::test]
async fn an_address_belongs_to_the_account_that_verified_it() {
    let world = World::new().await;
    let (_, of_one) = world.account_at("shared@a.example").await;
    let other = world.account("other").await;
    let of_other = world.unverified(other, "Shared@A.example").await;
    world.request(of_other).await.unwrap();
    let mut transaction = world.pool().begin().await.unwrap();
    let refused = verify_address(&mut transaction, &world.token(of_other)).await.unwrap_err();
    assert!(matches!(refused, ActError::AddressTaken), "{refused}");
    // The caller's transaction is still good; and once the other lets go of it, it can be had.
    replace_address(&mut transaction, &world.recorder, of_one, "else@a.example").await.unwrap().committed();
    assert!(verify_address(&mut transaction, &world.token(of_other)).await.unwrap().made_primary);
    transaction.commit().await.unwrap();
}

/// The one that comes second waits for the first, and is refused once that has committed, or not once it has rolled back.
#[tokio::test]
async fn of_two_accounts_that_verify_one_address_at_once_one_gets_it() {
    for commits in [true, false] {
        let world = World::new().await;
        let mut ids = Vec::new();
        for handle in ["one", "two"] {
            let account = world.account(handle).await;
            ids.push(world.unverified(account, "shared@a.example").await);
            world.request(ids[ids.len() - 1]).await.unwrap();
        }
        let mut first = world.pool().begin().await.unwrap();
        verify_address(&mut first, &world.token(ids[0])).await.unwrap();
        let (pool, token) = (world.pool().clone(), world.token(ids[1]));
        let second = tokio::spawn(async move {
            let mut second = pool.begin().await.unwrap();
            let verified = verify_address(&mut second, &token).await;
            second.commit().await.unwrap();
            verified
        });
        world.somebody_waits().await;
        if commits {
            first.commit().await.unwrap()
        } else {
            first.rollback().await.unwrap()
        }
        match second.await.unwrap() {
            Err(ActError::AddressTaken) => assert!(commits),
            verified => assert!(verified.unwrap().made_primary && !commits),
        }
        assert_eq!(world.count("postrider_identity.email_addresses where verified_at is not null").await, 1);
    }
}

/// In either order: whoever comes second sees what the first did.
#[tokio::test]
async fn a_link_that_is_followed_while_its_address_is_removed_verifies_nothing() {
    let world = World::new().await;
    let (account, _) = world.account_at("primary@a.example").await;
    let address = world.unverified(account, "alice@a.example").await;
    world.request(address).await.unwrap();
    let mut removing = world.pool().begin().await.unwrap();
    remove_address(&mut removing, &world.recorder, address).await.unwrap().committed();
    let (pool, token) = (world.pool().clone(), world.token(address));
    let following = tokio::spawn(async move { verify_address(&mut pool.acquire().await.unwrap(), &token).await });
    world.somebody_waits().await;
    removing.commit().await.unwrap();
    assert!(matches!(following.await.unwrap(), Err(ActError::NoSuch(Missing::Link))));
    assert_eq!(
        world
            .count("postrider_identity.email_addresses where removed_at is not null and verified_at is not null")
            .await,
        0
    );
}

#[tokio::test]
async fn the_primary_address_is_replaced_but_not_removed() {
    let world = World::new().await;
    let (account, one) = world.account_at("one@a.example").await;
    let two = world.verified(account, "two@a.example").await;
    let three = world.unverified(account, "three@a.example").await;
    world.forget();
    let mut connection = world.connect().await;
    let refused = remove_address(&mut connection, &world.recorder, one).await.unwrap_err();
    assert!(matches!(refused, ActError::IsPrimary), "{refused}");
    assert!(matches!(make_primary(&mut connection, three).await, Err(ActError::NotVerified)));
    make_primary(&mut connection, two).await.unwrap();
    assert_eq!(primary(&mut connection, account).await.unwrap(), Some(two));
    remove_address(&mut connection, &world.recorder, one).await.unwrap().committed();
    let mail = world.mail();
    assert_eq!((mail.notice.clone(), texts(&mail)), (Notice::AddressRemoved, vec!["one@a.example"]), "to that address");

    let four = replace_address(&mut connection, &world.recorder, two, "four@a.example").await.unwrap().committed();
    let mail = world.mail();
    assert_eq!((mail.notice.clone(), texts(&mail)), (Notice::AddressReplaced, vec!["two@a.example"]));
    assert_eq!(primary(&mut connection, account).await.unwrap(), None, "until the new one is verified");
    world.request(four).await.unwrap();
    assert!(verify_address(&mut connection, &world.token(four)).await.unwrap().made_primary);
    let replaced: Option<uuid::Uuid> =
        sqlx::query_scalar("select replaced_by from postrider_identity.email_addresses where id = $1")
            .bind(two)
            .fetch_one(&mut connection)
            .await
            .unwrap();
    assert_eq!(replaced, Some(four.0));
}

#[tokio::test]
async fn an_address_that_was_never_verified_is_not_written_to_when_it_goes() {
    let world = World::new().await;
    let (account, _) = world.account_at("primary@a.example").await;
    let stranger = world.unverified(account, "stranger@b.example").await;
    let typo = world.unverified(account, "typo@b.example").await;
    world.forget();
    let mut connection = world.connect().await;
    remove_address(&mut connection, &world.recorder, stranger).await.unwrap().committed();
    let mail = world.mail();
    assert_eq!((mail.notice.clone(), texts(&mail)), (Notice::AddressRemoved, vec![]), "the inbox says it");
    replace_address(&mut connection, &world.recorder, typo, "right@b.example").await.unwrap().committed();
    let mail = world.mail();
    assert_eq!((mail.notice.clone(), texts(&mail)), (Notice::AddressReplaced, vec![]));
}

#[tokio::test]
async fn an_account_with_an_address_is_told_there_of_one_that_is_added() {
    let world = World::new().await;
    let account = world.account("alice").await;
    world.unverified(account, "one@a.example").await;
    assert!(world.mails().is_empty(), "nobody to tell");
    world.verified(account, "two@a.example").await;
    world.forget();
    world.unverified(account, "three@a.example").await;
    let mail = world.mail();
    assert_eq!((mail.notice.clone(), texts(&mail)), (Notice::AddressAdded, vec!["two@a.example"]));
}

#[tokio::test]
async fn an_act_that_is_rolled_back_leaves_nothing() {
    let world = World::new().await;
    let (account, primary) = world.account_at("one@a.example").await;
    let before = world.count("postrider.events").await;
    let mut transaction = world.pool().begin().await.unwrap();
    let new = replace_address(&mut transaction, &world.recorder, primary, "two@a.example").await.unwrap();
    request_verification(&mut transaction, &world.recorder, &world.keys, new.value).await.unwrap().committed();
    transaction.rollback().await.unwrap();
    assert_eq!(world.count("postrider.events").await, before);
    assert_eq!(addresses(&mut world.connect().await, account).await.unwrap()[0].id, primary);
}

/// Read when it is sent: whatever became of the address meanwhile.
#[tokio::test]
async fn a_verification_link_has_a_recipient_only_while_there_is_something_to_verify() {
    let world = World::new().await;
    let account = world.account("alice").await;
    let other = world.account("other").await;
    let address = world.unverified(account, "alice@a.example").await;
    let mut connection = world.connect().await;
    let mut recipient = async |whose| ReferenceDirectory.verification(&mut connection, whose, address).await.unwrap();
    assert_eq!(recipient(account).await, None, "not asked for");
    world.request(address).await.unwrap();
    let found = recipient(account).await.unwrap();
    assert_eq!((found.address.as_str(), found.handle.as_str()), ("alice@a.example", "alice"));
    assert_eq!(found.token_digest, world.keys.verification_token(address).digest());
    assert_eq!(recipient(other).await, None, "of another account");

    let mut changing = world.connect().await;
    for state in [AccountState::Disabled, AccountState::Closed] {
        set_state(&mut changing, account, state).await.unwrap();
        assert_eq!(recipient(account).await, None, "{state:?}");
    }
    set_state(&mut changing, account, AccountState::Active).await.unwrap();
    for gone in [false, true] {
        let mut transaction = world.pool().begin().await.unwrap();
        match gone {
            true => remove_address(&mut transaction, &world.recorder, address).await.unwrap().committed(),
            false => assert!(!verify_address(&mut transaction, &world.token(address)).await.unwrap().again),
        }
        let read = ReferenceDirectory.verification(&mut transaction, account, address).await.unwrap();
        assert_eq!(read, None, "removed: {gone}");
        transaction.rollback().await.unwrap();
    }
    replace_address(&mut changing, &world.recorder, address, "new@a.example").await.unwrap().committed();
    assert_eq!(recipient(account).await, None, "replaced");
}
