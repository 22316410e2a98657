//! An announcement to a hundred thousand accounts.

use std::sync::Arc;
use std::time::Instant;

use postrider::identity::{Reach, preview_announcement, send_announcement};
use postrider::{Channels, Recorder};

use crate::world::{Announcements, World};

const ACCOUNTS: i64 = 100_000;
const PAGE: u32 = 1000;

/// Of every ten accounts, one has no address, one opted out and one is closed.
async fn fill(world: &World) {
    for statement in [
        "insert into postrider_identity.accounts (id, handle, state)
         select postrider_identity.uuid_v7(), 'a' || n, case when n % 10 = 2 then 'closed' else 'active' end
           from generate_series(1, $1) n",
        "insert into postrider_identity.email_addresses (id, account_id, address, is_primary, verified_at)
         select gen_random_uuid(), a.id, a.handle || '@a.example', true, now()
           from postrider_identity.accounts a where a.handle not like '%0' and $1 > 0",
        "insert into postrider_identity.email_preferences (account_id, announcements)
         select a.id, false from postrider_identity.accounts a where a.handle like '%1' and $1 > 0",
    ] {
        sqlx::query(statement).bind(ACCOUNTS).execute(world.pool()).await.unwrap();
    }
}

/// The channel asserts that no page is longer than it asked for; what is held is one page.
#[tokio::test]
async fn an_announcement_to_a_hundred_thousand_is_written_a_page_at_a_time() {
    let world = World::new().await;
    fill(&world).await;
    let announcement = world.draft(false).await;
    let recorder = Recorder::new(Channels::new(vec![Arc::new(Announcements { page: PAGE })]).unwrap());
    let mut connection = world.connect().await;
    let expected = Reach { recipients: 90_000, without_address: 10_000, opted_out: 10_000 };
    assert_eq!(preview_announcement(&mut connection, announcement).await.unwrap(), expected);

    let started = Instant::now();
    let mut transaction = world.pool().begin().await.unwrap();
    let mut heard = Vec::new();
    let sent = send_announcement(&mut transaction, &recorder, announcement, &mut |so_far| heard.push(so_far)).await;
    let sent = sent.unwrap();
    // Written by one statement, counted by one and then walked once, by a planner that knows nothing yet of what was
    // just written: a page that walked all of them would read 70 times as much.
    let read = "select coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0)
                  from pg_stat_xact_user_tables where relid = 'postrider_identity.notifications'::regclass";
    let read: i64 = sqlx::query_scalar(read).fetch_one(&mut *transaction).await.unwrap();
    assert!((90_000..400_000).contains(&read), "{read} rows read");
    transaction.commit().await.unwrap();
    println!("{} recipients in {:?}", sent.value.recipients, started.elapsed());
    assert_eq!((sent.value, sent.deliveries()), (expected, expected.mailed()));
    assert_eq!(heard, (1..=70).map(|pages| pages * u64::from(PAGE)).collect::<Vec<_>>());
    assert_eq!(world.count("postrider_identity.notifications").await, 90_000);
    assert_eq!(world.count("(select distinct owner from postrider.deliveries) owners").await, 70_000);
}
