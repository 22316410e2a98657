-- The queue: events, the deliveries they cause, and the order within each key.
-- Forward only. A later release may add to this; it takes nothing away that this release reads.

create table postrider.events (
    id          uuid primary key,
    kind        text not null,
    payload     jsonb not null,
    recorded_at timestamptz not null default statement_timestamp()
);
comment on table postrider.events is 'Facts the host recorded, and what operators did.';

create table postrider.deliveries (
    id                uuid primary key,
    event_id          uuid not null,
    channel           text not null,
    owner             text not null,
    subject           text,
    ordering_key      text,
    ordinal           bigint,
    destination       text not null,
    payload           jsonb not null,
    status            text not null default 'pending',
    status_since      timestamptz not null default statement_timestamp(),
    claimable         boolean not null default true,
    due_at            timestamptz not null default statement_timestamp(),
    claim_token       uuid,
    attempt           integer not null default 0,
    attempts_at_retry integer not null default 0,
    last_error        text,
    created_at        timestamptz not null default statement_timestamp(),

    constraint deliveries_status check (status in ('pending', 'succeeded', 'failed', 'cancelled')),
    constraint deliveries_claimed_are_claimable check (claim_token is null or (status = 'pending' and claimable)),
    constraint deliveries_unordered_are_claimable check (claimable or ordering_key is not null),
    constraint deliveries_ordered_have_ordinals check ((ordering_key is null) = (ordinal is null)),
    constraint deliveries_attempts check (attempt >= attempts_at_retry and attempts_at_retry >= 0),
    constraint deliveries_error_is_a_kind check (last_error ~ '^([1-9][0-9]{2}|[a-z][a-z0-9_]{0,39})$')
);
comment on table postrider.deliveries is 'One row for each message to one destination.';
comment on column postrider.deliveries.status_since is
    'When it entered its status. While pending: when it was created or last retried by an operator, which MAX_AGE counts from.';
comment on column postrider.deliveries.claimable is
    'False while it waits behind the head of its ordering key.';
comment on column postrider.deliveries.due_at is
    'The earliest start of the next attempt. While claim_token is set: the end of the lease.';
comment on column postrider.deliveries.attempts_at_retry is
    'What attempt was when an operator last retried it: the backoff starts over from there.';

-- What a claim walks: nothing finished, nothing that waits behind a key.
create index deliveries_due on postrider.deliveries (channel, due_at)
    where status = 'pending' and claimable;

-- The first unfinished delivery of a key.
create index deliveries_order on postrider.deliveries (channel, ordering_key, ordinal)
    where ordering_key is not null and status in ('pending', 'failed');

-- Listings, counts and cleanup.
create index deliveries_by_status on postrider.deliveries (channel, status, status_since, id);

create table postrider.delivery_orderings (
    channel      text not null,
    ordering_key text not null,
    last_ordinal bigint not null,
    unfinished   bigint not null,
    held_until   timestamptz not null default '-infinity',
    primary key (channel, ordering_key)
);
comment on table postrider.delivery_orderings is
    'One row for each key. Locked from drawing an ordinal until commit, so that the order of ordinals is commit order.';
comment on column postrider.delivery_orderings.unfinished is
    'Deliveries of the key that are pending or failed, and those that ended but are still in delivery_releases.';
comment on column postrider.delivery_orderings.held_until is
    'Nothing of the key is sent before: the end of the lease of a delivery that was cancelled in mid-attempt.';

-- An ordered delivery that ended while somebody's open transaction held its ordering row. Whoever finds an entry
-- whose ordering row is free makes the key's next delivery claimable. Empty nearly always.
create table postrider.delivery_releases (
    id           bigint generated always as identity primary key,
    channel      text not null,
    ordering_key text not null,
    held_until   timestamptz not null default '-infinity'
);

-- Rows are rewritten twice in a short life: vacuum by count, not by share of the table.
alter table postrider.deliveries set (
    fillfactor = 80,
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_cost_delay = 1
);
alter table postrider.delivery_orderings set (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);

-- Two releases share a database while one replaces the other. A migration that an older release can live with leaves
-- this alone; one that takes something away raises it to the oldest migration that a release must know.
create table postrider.compatibility (
    only_row         boolean primary key default true check (only_row),
    oldest_migration bigint not null
);
insert into postrider.compatibility (oldest_migration) values (1);
