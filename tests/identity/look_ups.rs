//! What is looked up goes through an index, however many accounts there are.

use postrider::directory::{Directory, Notice};
use postrider::identity::{
    AccountId, AddressId, AnnouncementId, NotificationId, ReferenceDirectory, SessionId, add_address, addresses,
    cancel_recovery, delete_account, inbox, make_primary, mark_read, notify, remove_address, replace_address,
    request_recovery, request_verification, secure_account, set_announcements, use_recovery, verify_address,
    wants_announcements,
};
use sqlx::{PgConnection, Postgres, Transaction};

use crate::world::World;

/// Of each account: two addresses, a session with a client, a recovery, two notifications of which one is of an
/// announcement, preferences.
const FILL: &str = "
    insert into postrider_identity.accounts (id, handle)
    select postrider_identity.uuid_v7(), 'a' || n from generate_series(1, 3000) n;
    insert into postrider_identity.email_addresses (id, account_id, address, is_primary, verified_at, verification_digest)
    select gen_random_uuid(), a.id, a.handle || '@a.example', true, now(), sha256(a.id::text::bytea)
      from postrider_identity.accounts a;
    insert into postrider_identity.email_addresses (id, account_id, address)
    select gen_random_uuid(), a.id, a.handle || '@b.example' from postrider_identity.accounts a;
    insert into postrider_identity.sessions (id, account_id)
    select postrider_identity.uuid_v7(), a.id from postrider_identity.accounts a;
    insert into postrider_identity.oidc_clients (id, name) select 'c' || n, 'c' from generate_series(1, 3000) n;
    insert into postrider_identity.oidc_authorization_codes (code_digest, client_id, session_id, redeemed_at)
    select sha256(s.id::text::bytea), 'c1', s.id, now() from postrider_identity.sessions s;
    insert into postrider_identity.announcements (id, subject, text, created_by)
    select postrider_identity.uuid_v7(), 's', 't', 'root' from generate_series(1, 3000);
    insert into postrider_identity.notifications (id, account_id, kind)
    select postrider_identity.uuid_v7(), a.id, 'address_added' from postrider_identity.accounts a;
    insert into postrider_identity.notification_addressees (notification_id, address_id)
    select n.id, e.id from postrider_identity.notifications n
      join postrider_identity.email_addresses e on e.account_id = n.account_id and e.is_primary;
    insert into postrider_identity.notifications (id, account_id, kind, announcement_id)
    select postrider_identity.uuid_v7(), a.id, 'announcement', (select an.id from postrider_identity.announcements an limit 1)
      from postrider_identity.accounts a;
    insert into postrider_identity.recoveries (id, account_id, address_id, token_digest)
    select gen_random_uuid(), e.account_id, e.id, sha256(e.id::text::bytea)
      from postrider_identity.email_addresses e where e.is_primary;
    insert into postrider_identity.email_preferences (account_id) select a.id from postrider_identity.accounts a;
    insert into postrider.deliveries (id, event_id, channel, owner, subject, destination, payload)
    select gen_random_uuid(), gen_random_uuid(), 'announcement', a.id::text, 's', 'd', '{}' from postrider_identity.accounts a;
    analyze;";

#[derive(sqlx::FromRow)]
struct Somebody {
    account: AccountId,
    primary: AddressId,
    other: AddressId,
    session: SessionId,
    notification: NotificationId,
    announcement: AnnouncementId,
}

async fn somebody(connection: &mut PgConnection) -> Somebody {
    sqlx::query_as(
        "select a.id as account, e.id as primary, o.id as other, s.id as session,
                n.id as notification, an.announcement_id as announcement
           from postrider_identity.accounts a
           join postrider_identity.email_addresses e on e.account_id = a.id and e.is_primary
           join postrider_identity.email_addresses o on o.account_id = a.id and not o.is_primary
           join postrider_identity.sessions s on s.account_id = a.id
           join postrider_identity.notifications n on n.account_id = a.id and n.announcement_id is null
           join postrider_identity.notifications an on an.account_id = a.id and an.announcement_id is not null
          where a.handle = 'a1500'",
    )
    .fetch_one(connection)
    .await
    .unwrap()
}

/// The tables that were read from end to end, and how much of them. What this session's earlier transactions read may be among
/// it: the server adds that up only now and then.
async fn scanned(transaction: &mut Transaction<'_, Postgres>) -> Vec<(String, i64)> {
    sqlx::query_as(
        "select relname::text, seq_tup_read from pg_stat_xact_user_tables
          where schemaname like 'postrider%' and seq_tup_read > 0 order by 1",
    )
    .fetch_all(&mut **transaction)
    .await
    .unwrap()
}

#[tokio::test]
async fn every_look_up_goes_through_an_index() {
    let world = World::new().await;
    sqlx::raw_sql(FILL).execute(world.pool()).await.unwrap();
    let one = somebody(&mut world.connect().await).await;
    let directory = ReferenceDirectory;
    let (recorder, keys) = (&world.recorder, &world.keys);
    let (account, token) = (one.account, world.token(one.other));
    let mut connection = world.connect().await;
    request_verification(&mut connection, recorder, keys, one.other).await.unwrap().committed();
    let recovery = request_recovery(&mut connection, recorder, keys, account).await.unwrap().committed();
    let recovery_token = world.keys.recovery_token(recovery);
    macro_rules! through_an_index {
        ($(|$it:ident| $look:expr;)*) => {$({
            let mut transaction = world.pool().begin().await.unwrap();
            let before = scanned(&mut transaction).await;
            {
                let $it = &mut *transaction;
                let _ = $look.await.unwrap();
            }
            assert_eq!(scanned(&mut transaction).await, before, stringify!($look));
            transaction.rollback().await.unwrap();
        })*};
    }
    through_an_index! {
        |it| directory.session_clients(it, one.session);
        |it| directory.verification(it, account, one.other);
        |it| directory.recovery(it, recovery, one.primary);
        |it| directory.notification(it, one.notification);
        |it| directory.announcement_recipients(it, one.announcement, Some(account), 10);
        |it| directory.announcement(it, one.announcement, account);
        |it| directory.unsubscribe(it, account);
        |it| addresses(it, account);
        |it| add_address(it, recorder, account, "new@a.example");
        |it| verify_address(it, &token);
        |it| make_primary(it, one.primary);
        |it| remove_address(it, recorder, one.other);
        |it| replace_address(it, recorder, one.primary, "new@a.example");
        |it| request_verification(it, recorder, keys, one.other);
        |it| request_recovery(it, recorder, keys, account);
        |it| use_recovery(it, recorder, recovery_token.as_str(), None);
        |it| cancel_recovery(it, recovery);
        |it| secure_account(it, recorder, account, &[]);
        |it| notify(it, recorder, account, &Notice::AddressAdded);
        |it| inbox(it, account, None, 10);
        |it| mark_read(it, account, one.notification);
        |it| wants_announcements(it, account);
        |it| set_announcements(it, account, false);
        |it| delete_account(it, recorder, account);
    }
}
