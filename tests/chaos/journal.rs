//! Every change of a delivery's row, written down by a trigger in the transaction that makes it.

use sqlx::PgConnection;
use uuid::Uuid;

/// A row before or after a change. Times are the database's, in microseconds.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct RowState {
    pub status: String,
    pub token: Option<Uuid>,
    pub attempt: u32,
    pub due: i64,
    pub claimable: bool,
}

#[derive(Debug, Clone, serde::Serialize)]
pub struct Transition {
    pub delivery: Uuid,
    pub at: i64,
    pub before: Option<RowState>,
    pub after: Option<RowState>,
}

pub async fn attach(connection: &mut PgConnection) {
    sqlx::raw_sql(
        "create schema chaos;
         create type chaos.state as (status text, token uuid, attempt integer, due timestamptz, claimable boolean);
         create table chaos.journal (
             entry    bigint generated always as identity primary key,
             delivery uuid not null,
             at       timestamptz not null default statement_timestamp(),
             before   chaos.state,
             after    chaos.state
         );
         create function chaos.state_of(d postrider.deliveries) returns chaos.state language sql as
             $$ select row(d.status, d.claim_token, d.attempt, d.due_at, d.claimable)::chaos.state $$;
         create function chaos.note() returns trigger language plpgsql as $$
         begin
             if tg_op = 'INSERT' then
                 insert into chaos.journal (delivery, after) values (new.id, chaos.state_of(new));
             elsif tg_op = 'UPDATE' then
                 insert into chaos.journal (delivery, before, after)
                     values (new.id, chaos.state_of(old), chaos.state_of(new));
             else
                 insert into chaos.journal (delivery, before) values (old.id, chaos.state_of(old));
             end if;
             return null;
         end $$;
         create trigger note after insert or update or delete on postrider.deliveries
             for each row execute function chaos.note();",
    )
    .execute(connection)
    .await
    .unwrap();
}

type Columns = (Option<String>, Option<Uuid>, Option<i32>, Option<i64>, Option<bool>);

fn state((status, token, attempt, due, claimable): Columns) -> Option<RowState> {
    let attempt = attempt.unwrap_or_default().try_into().unwrap();
    Some(RowState { status: status?, token, attempt, due: due?, claimable: claimable? })
}

/// All of it, in the order of each row's changes.
pub async fn read(connection: &mut PgConnection) -> Vec<Transition> {
    #[derive(sqlx::FromRow)]
    struct Entry {
        delivery: Uuid,
        at: i64,
        before_status: Option<String>,
        before_token: Option<Uuid>,
        before_attempt: Option<i32>,
        before_due: Option<i64>,
        before_claimable: Option<bool>,
        after_status: Option<String>,
        after_token: Option<Uuid>,
        after_attempt: Option<i32>,
        after_due: Option<i64>,
        after_claimable: Option<bool>,
    }
    let entries: Vec<Entry> = sqlx::query_as(
        "select delivery, (extract(epoch from at) * 1000000)::bigint as at,
                (before).status as before_status, (before).token as before_token, (before).attempt as before_attempt,
                (extract(epoch from (before).due) * 1000000)::bigint as before_due,
                (before).claimable as before_claimable,
                (after).status as after_status, (after).token as after_token, (after).attempt as after_attempt,
                (extract(epoch from (after).due) * 1000000)::bigint as after_due,
                (after).claimable as after_claimable
           from chaos.journal
          order by entry",
    )
    .fetch_all(connection)
    .await
    .unwrap();
    let transitions = entries.into_iter().map(|e| Transition {
        delivery: e.delivery,
        at: e.at,
        before: state((e.before_status, e.before_token, e.before_attempt, e.before_due, e.before_claimable)),
        after: state((e.after_status, e.after_token, e.after_attempt, e.after_due, e.after_claimable)),
    });
    transitions.collect()
}

/// The database's clock, in the journal's terms.
pub async fn now(connection: &mut PgConnection) -> i64 {
    let now = sqlx::query_scalar("select (extract(epoch from statement_timestamp()) * 1000000)::bigint");
    now.fetch_one(connection).await.unwrap()
}
