//! Purging an account.

use postrider::Recorder;
use postrider::directory::Notice;
use postrider::identity::{
    AccountId, create_session, delete_account, notify, request_recovery, send_announcement, set_announcements,
};
use postrider::queue;
use postrider_actors::laws::channel_named;
use sqlx::AssertSqlSafe;

use crate::world::World;

/// Every row of both schemas that holds `needle` in any column whatever, by its table.
async fn holding(world: &World, needle: &str) -> Vec<String> {
    let tables: Vec<String> = sqlx::query_scalar(
        "select format('%I.%I', schemaname, tablename) from pg_tables where schemaname like 'postrider%' order by 1",
    )
    .fetch_all(world.pool())
    .await
    .unwrap();
    assert!(tables.len() > 15, "{tables:?}");
    let mut found = Vec::new();
    for table in tables {
        let look = format!("select count(*) from {table} t where t::text ilike $1");
        let rows: i64 =
            sqlx::query_scalar(AssertSqlSafe(look)).bind(format!("%{needle}%")).fetch_one(world.pool()).await.unwrap();
        if rows > 0 {
            found.push(table);
        }
    }
    found
}

/// An account with something in every table.
async fn busy(world: &World, name: &str) -> AccountId {
    let (account, primary) = world.account_at(&format!("{name}@a.example")).await;
    world.unverified(account, &format!("{name}@b.example")).await;
    let old = world.verified(account, &format!("{name}@c.example")).await;
    let mut connection = world.connect().await;
    let recorder = &world.recorder;
    postrider::identity::replace_address(&mut connection, recorder, old, &format!("{name}@d.example"))
        .await
        .unwrap()
        .committed();
    create_session(&mut connection, account).await.unwrap();
    request_recovery(&mut connection, recorder, &world.keys, account).await.unwrap().committed();
    notify(&mut connection, recorder, account, &Notice::PasskeyAdded { name: name.into() }).await.unwrap().committed();
    set_announcements(&mut connection, account, true).await.unwrap();
    let _ = primary;
    account
}

#[tokio::test]
async fn a_purge_leaves_no_row_that_holds_the_accounts_id_or_addresses_but_the_events() {
    let world = World::new().await;
    let (alice, bob) = (busy(&world, "alice").await, busy(&world, "bob").await);
    let announcement = world.draft(false).await;
    let mut connection = world.connect().await;
    send_announcement(&mut connection, &world.recorder, announcement, &mut |_| ()).await.unwrap().committed();
    // In every status, and one that is being attempted.
    for (number, status) in ["succeeded", "failed", "cancelled", "pending"].into_iter().enumerate() {
        world
            .execute(format!(
                "insert into postrider.deliveries (id, event_id, channel, owner, subject, destination, payload, status)
                 values (gen_random_uuid(), gen_random_uuid(), 'announcement', '{alice}', 'n{number}', '{alice}', '{{}}', '{status}')"
            ))
            .await;
    }
    world.execute("update postrider.deliveries set claim_token = gen_random_uuid() where subject = 'n3'".into()).await;
    let id = alice.to_string();
    let before = holding(&world, &id).await;
    for table in [
        "postrider.deliveries",
        "postrider.events",
        "postrider_identity.accounts",
        "postrider_identity.email_addresses",
        "postrider_identity.email_preferences",
        "postrider_identity.notifications",
        "postrider_identity.recoveries",
        "postrider_identity.sessions",
    ] {
        assert!(before.iter().any(|found| found == table), "{table} is not in {before:?}");
    }
    assert_eq!(world.count("postrider_identity.notification_addressees").await, 4 * 2);

    let mut transaction = world.pool().begin().await.unwrap();
    let revoked = delete_account(&mut transaction, &world.recorder, alice).await.unwrap();
    assert_eq!(revoked.sessions(), 1);
    transaction.commit().await.unwrap();
    revoked.committed();
    assert_eq!(holding(&world, &id).await, ["postrider.events"], "facts that the host recorded, by ids alone");
    assert_eq!(holding(&world, "alice").await, Vec::<String>::new(), "no handle, no address, no name of a passkey");

    // And nobody else's.
    assert_eq!(world.count("postrider.deliveries").await, 1);
    assert_eq!(world.count("postrider_identity.notification_addressees").await, 4);
    let mut left = holding(&world, &bob.to_string()).await;
    left.retain(|table| table.starts_with("postrider_identity"));
    assert_eq!(left.len(), 6, "{left:?}");
}

/// It waits for the announcement, and then finds what was written for it.
#[tokio::test]
async fn an_account_that_is_purged_while_an_announcement_is_sent_leaves_no_delivery_behind() {
    let world = World::new().await;
    let (account, _) = world.account_at("alice@a.example").await;
    world.account_at("bob@a.example").await;
    let announcement = world.draft(false).await;
    let mut sending = world.pool().begin().await.unwrap();
    let sent = send_announcement(&mut sending, &world.recorder, announcement, &mut |_| ()).await.unwrap();
    assert_eq!(sent.deliveries(), 2);
    let (pool, recorder) = (world.pool().clone(), world.recorder.clone());
    let purging = tokio::spawn(purge(pool, recorder, account));
    world.somebody_waits().await;
    sending.commit().await.unwrap();
    purging.await.unwrap();
    let owners: Vec<String> =
        sqlx::query_scalar("select owner from postrider.deliveries").fetch_all(world.pool()).await.unwrap();
    assert!(owners.len() == 1 && owners[0] != account.to_string(), "{owners:?}");
}

/// The other way round: it is no recipient.
#[tokio::test]
async fn an_announcement_that_is_sent_while_an_account_is_purged_leaves_it_out() {
    let world = World::new().await;
    let (account, _) = world.account_at("alice@a.example").await;
    let announcement = world.draft(false).await;
    let mut purging = world.pool().begin().await.unwrap();
    delete_account(&mut purging, &world.recorder, account).await.unwrap().committed();
    let (pool, recorder) = (world.pool().clone(), world.recorder.clone());
    let sending = tokio::spawn(async move {
        let mut transaction = pool.begin().await.unwrap();
        let sent = send_announcement(&mut transaction, &recorder, announcement, &mut |_| ()).await.unwrap();
        transaction.commit().await.unwrap();
        sent.committed()
    });
    world.somebody_waits().await;
    purging.commit().await.unwrap();
    assert_eq!(sending.await.unwrap().recipients, 0);
    assert_eq!(world.count("postrider.deliveries").await, 0);
}

async fn purge(pool: sqlx::PgPool, recorder: Recorder, account: AccountId) {
    let mut transaction = pool.begin().await.unwrap();
    let revoked = delete_account(&mut transaction, &recorder, account).await.unwrap();
    transaction.commit().await.unwrap();
    revoked.committed();
}

/// The purge waits for it, and then finds it: else it would end untold, or hold up the purge.
#[tokio::test]
async fn a_session_that_begins_as_its_account_is_purged_is_revoked_with_it() {
    let world = World::new().await;
    let account = world.account("alice").await;
    let mut beginning = world.pool().begin().await.unwrap();
    let session = create_session(&mut beginning, account).await.unwrap();
    let purging = tokio::spawn(purge(world.pool().clone(), world.recorder.clone(), account));
    world.somebody_waits().await;
    beginning.commit().await.unwrap();
    purging.await.unwrap();
    assert_eq!(world.events("session_revoked").await[0]["session"], session.to_string());
    assert_eq!(world.count("postrider_identity.accounts").await, 0);
}

#[tokio::test]
async fn deleting_what_an_owner_has_in_a_channel_spares_ordered_deliveries_other_channels_and_other_owners() {
    let world = World::new().await;
    for (channel, owner, key) in
        [("one", "a", ""), ("one", "a", ""), ("one", "b", ""), ("two", "a", ""), ("one", "a", "key")]
    {
        let ordering = if key.is_empty() { "null, null" } else { "'key', 1" };
        world
            .execute(format!(
                "insert into postrider.deliveries (id, event_id, channel, owner, destination, payload, ordering_key, ordinal)
                 values (gen_random_uuid(), gen_random_uuid(), '{channel}', '{owner}', 'd', '{{}}', {ordering})"
            ))
            .await;
    }
    let mut connection = world.connect().await;
    let one = channel_named("one").name;
    assert_eq!(queue::delete_of_owner(&mut connection, &one, "a").await.unwrap(), 2);
    assert_eq!(queue::delete_of_owner(&mut connection, &one, "a").await.unwrap(), 0);
    assert_eq!(world.count("postrider.deliveries").await, 3);
}

/// By their own index, however much else there is in the channel.
#[tokio::test]
async fn the_announcements_of_an_account_are_found_without_walking_those_of_others() {
    let world = World::new().await;
    world
        .execute(
            "insert into postrider.deliveries (id, event_id, channel, owner, destination, payload)
             select gen_random_uuid(), gen_random_uuid(), 'announcement', 'owner-' || n % 1000, 'd', '{}'
               from generate_series(1, 20000) n"
                .to_owned(),
        )
        .await;
    world.execute("analyze postrider.deliveries".to_owned()).await;
    let mut connection = world.connect().await;
    let announcement = channel_named("announcement").name;
    assert_eq!(queue::delete_of_owner(&mut connection, &announcement, "owner-7").await.unwrap(), 20);
    sqlx::query("select pg_stat_force_next_flush()").execute(&mut connection).await.unwrap();
    let read = "select idx_tup_read from pg_stat_user_indexes where indexrelname = 'deliveries_of_announcements'";
    let read: i64 = sqlx::query_scalar(read).fetch_one(&mut connection).await.unwrap();
    assert_eq!(read, 20);
}
