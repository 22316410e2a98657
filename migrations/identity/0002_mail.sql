-- What the e-mail channels need of the reference domain: addresses, recoveries, notifications, announcements.
-- An older release goes on beside it: it reads nothing of this, and writes no account's state.

-- Hosts queue behind this lock while it is waited for: rather fail, and be run again, than hold them up.
set local lock_timeout = '5s';

alter table postrider_identity.accounts drop constraint accounts_state_check;
alter table postrider_identity.accounts
    add constraint accounts_state_check check (state in ('active', 'disabled', 'closed')) not valid;
alter table postrider_identity.accounts validate constraint accounts_state_check;
comment on column postrider_identity.accounts.state is
    'Disabled by an administrator, closed by its owner; both keep what they have until the account is purged.';
-- The recipients of an announcement.
create index accounts_active on postrider_identity.accounts (id) where state = 'active';

-- What a purge of an account looks through.
create index sessions_by_account on postrider_identity.sessions (account_id);
create index oidc_authorization_codes_by_session on postrider_identity.oidc_authorization_codes (session_id);

-- A UUIDv7 (RFC 9562 5.7) for rows that a statement makes by the thousand: a version 4 with the milliseconds put over
-- its first 48 bits and two bits of its version set.
create function postrider_identity.uuid_v7() returns uuid language sql volatile as $$
    select encode(
        set_bit(set_bit(
            overlay(uuid_send(gen_random_uuid())
                    placing substring(int8send(floor(extract(epoch from clock_timestamp()) * 1000)::bigint) from 3)
                    from 1 for 6),
            52, 1), 53, 1),
        'hex')::uuid
$$;

create table postrider_identity.email_addresses (
    id                  uuid primary key,
    account_id          uuid not null references postrider_identity.accounts on delete cascade,
    address             text not null check (address like '%_@_%'),
    is_primary          boolean not null default false,
    verified_at         timestamptz,
    removed_at          timestamptz,
    replaced_by         uuid references postrider_identity.email_addresses on delete set null,
    verification_digest bytea check (octet_length(verification_digest) = 32),
    created_at          timestamptz not null default statement_timestamp(),

    constraint email_addresses_primary_are_verified check (not is_primary or (verified_at is not null and removed_at is null)),
    constraint email_addresses_replaced_are_removed check (replaced_by is null or removed_at is not null)
);
comment on table postrider_identity.email_addresses is
    'The addresses of accounts, those removed too: what was sent to them says so by their id.';
comment on column postrider_identity.email_addresses.verification_digest is
    'SHA-256 of the token of the last verification link; the token itself is stored nowhere.';
create unique index email_addresses_one_primary on postrider_identity.email_addresses (account_id) where is_primary;
-- Whoever can read an address's mail owns it: one account alone has it verified.
create unique index email_addresses_one_owner on postrider_identity.email_addresses (lower(address))
    where verified_at is not null and removed_at is null;
create unique index email_addresses_once on postrider_identity.email_addresses (account_id, lower(address))
    where removed_at is null;
create unique index email_addresses_by_digest on postrider_identity.email_addresses (verification_digest);
create index email_addresses_of_account on postrider_identity.email_addresses (account_id);
create index email_addresses_by_replacement on postrider_identity.email_addresses (replaced_by) where replaced_by is not null;

create table postrider_identity.recoveries (
    id           uuid primary key,
    account_id   uuid not null references postrider_identity.accounts on delete cascade,
    address_id   uuid not null references postrider_identity.email_addresses on delete cascade,
    token_digest bytea not null unique check (octet_length(token_digest) = 32),
    created_at   timestamptz not null default statement_timestamp(),
    expires_at   timestamptz not null default statement_timestamp() + interval '1 hour',
    used_at      timestamptz,
    cancelled_at timestamptz,
    undo_until   timestamptz,

    constraint recoveries_end_once check (used_at is null or cancelled_at is null),
    constraint recoveries_used_are_undone check (undo_until is null or used_at is not null)
);
comment on table postrider_identity.recoveries is
    'Ways back into an account, each by a link to the address that was its primary one when it was requested, and good while it is.';
comment on column postrider_identity.recoveries.token_digest is
    'SHA-256 of the token of its link; the token itself is stored nowhere.';
comment on column postrider_identity.recoveries.undo_until is
    'Until then a passkey of the account undoes it; null: nothing does.';
create index recoveries_of_account on postrider_identity.recoveries (account_id);
create index recoveries_of_address on postrider_identity.recoveries (address_id);

create table postrider_identity.announcements (
    id         uuid primary key,
    subject    text not null check (subject <> ''),
    text       text not null check (text <> ''),
    essential  boolean not null default false,
    created_by text not null,
    created_at timestamptz not null default statement_timestamp(),
    sent_at    timestamptz
);
comment on table postrider_identity.announcements is
    'Administrators'' announcements. What was sent never changes: senders read it when they send.';

create function postrider_identity.refuse_change_of_sent() returns trigger language plpgsql as $$
begin
    raise exception 'announcement % is sent: what it says never changes', old.id using errcode = 'restrict_violation';
end
$$;

create trigger sent_announcements_never_change
    before update on postrider_identity.announcements
    for each row when (
        old.sent_at is not null
        and (new.id, new.subject, new.text, new.essential, new.sent_at)
            is distinct from (old.id, old.subject, old.text, old.essential, old.sent_at)
    )
    execute function postrider_identity.refuse_change_of_sent();

create table postrider_identity.notifications (
    id              uuid primary key,
    account_id      uuid not null references postrider_identity.accounts on delete cascade,
    kind            text not null check (kind ~ '^[a-z][a-z_]*$'),
    facts           jsonb not null default '{}',
    announcement_id uuid references postrider_identity.announcements,
    created_at      timestamptz not null default statement_timestamp(),
    read_at         timestamptz,

    constraint notifications_of_announcements check ((kind = 'announcement') = (announcement_id is not null))
);
comment on table postrider_identity.notifications is
    'The inboxes. An announcement''s text stays in its own table; being in the inbox is what makes a recipient.';
create index notifications_of_account on postrider_identity.notifications (account_id, id);
-- The recipients of an announcement, in the order of their ids.
create unique index notifications_of_announcement on postrider_identity.notifications (announcement_id, account_id)
    where announcement_id is not null;

create table postrider_identity.notification_addressees (
    notification_id uuid not null references postrider_identity.notifications on delete cascade,
    address_id      uuid not null references postrider_identity.email_addresses on delete cascade,
    primary key (notification_id, address_id)
);
comment on table postrider_identity.notification_addressees is
    'The addresses that a notification is mailed to, each once, as they were when it was written. None: no e-mail.';
create index notification_addressees_of_address on postrider_identity.notification_addressees (address_id);

create table postrider_identity.email_preferences (
    account_id    uuid primary key references postrider_identity.accounts on delete cascade,
    announcements boolean not null default true,
    changed_at    timestamptz not null default statement_timestamp()
);
comment on table postrider_identity.email_preferences is
    'What an account wants by e-mail, where it ever said so; no row: everything.';
