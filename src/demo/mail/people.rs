//! Whose mail it is: a few people by name, and many members.

use sqlx::{Connection, PgConnection};
use uuid::Uuid;

use super::super::DemoError;
use super::super::domain::CLIENT_PREFIX;
use crate::identity::{AccountId, AddressId};

/// Those by name, who each have a scene. All but the first have a verified address when the act begins.
pub(super) const NAMES: [&str; 12] =
    ["ada", "bob", "carol", "dan", "erin", "frank", "grace", "heidi", "ivan", "judy", "ken", "lena"];
const MEMBERS: usize = 200;

/// An account and its primary address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Person {
    pub(super) name: String,
    pub(super) account: AccountId,
    pub(super) primary: Option<(AddressId, String)>,
    pub(super) opted_out: bool,
}

/// A person's first address.
pub(super) fn first_address(name: &str) -> String {
    format!("{name}@example.net")
}

/// An address that a person adds later.
pub(super) fn second_address(name: &str) -> String {
    format!("{name}@example.org")
}

/// Everybody of the act, as they were before it.
fn planned() -> Vec<Person> {
    let person = |name: String, has_address: bool, opted_out| {
        let primary = has_address.then(|| (AddressId::generate(), first_address(&name)));
        Person { name, account: AccountId::generate(), primary, opted_out }
    };
    let named = NAMES.into_iter().enumerate().map(|(number, name)| person(name.into(), number > 0, false));
    let members = (1..=MEMBERS).map(|number| {
        let has_address = number % 25 != 0;
        person(format!("member{number:03}"), has_address, has_address && number % 10 == 0)
    });
    named.chain(members).collect()
}

/// Makes everybody, with addresses that were verified long ago.
pub(super) async fn make(connection: &mut PgConnection) -> Result<Vec<Person>, DemoError> {
    let people = planned();
    let with_address = || people.iter().filter_map(|person| person.primary.as_ref().map(|primary| (person, primary)));
    let accounts: Vec<Uuid> = people.iter().map(|person| person.account.0).collect();
    let handles: Vec<String> = people.iter().map(|person| format!("{CLIENT_PREFIX}{}", person.name)).collect();
    let mut transaction = connection.begin().await?;
    sqlx::query(
        "insert into postrider_identity.accounts (id, handle)
         select new.id, new.handle from unnest($1::uuid[], $2::text[]) as new (id, handle)",
    )
    .bind(accounts)
    .bind(handles)
    .execute(&mut *transaction)
    .await?;
    sqlx::query(
        "insert into postrider_identity.email_addresses (id, account_id, address, is_primary, verified_at)
         select n.id, n.account_id, n.address, true, statement_timestamp()
           from unnest($1::uuid[], $2::uuid[], $3::text[]) as n (id, account_id, address)",
    )
    .bind(with_address().map(|(_, (id, _))| id.0).collect::<Vec<_>>())
    .bind(with_address().map(|(person, _)| person.account.0).collect::<Vec<_>>())
    .bind(with_address().map(|(_, (_, address))| address.clone()).collect::<Vec<_>>())
    .execute(&mut *transaction)
    .await?;
    let opted_out: Vec<Uuid> = people.iter().filter(|person| person.opted_out).map(|person| person.account.0).collect();
    sqlx::query(
        "insert into postrider_identity.email_preferences (account_id, announcements)
         select account_id, false from unnest($1::uuid[]) as n (account_id)",
    )
    .bind(opted_out)
    .execute(&mut *transaction)
    .await?;
    transaction.commit().await?;
    Ok(people)
}
