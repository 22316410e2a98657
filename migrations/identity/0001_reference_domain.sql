-- The reference domain: accounts, sessions and OIDC clients, so that the channels work end to end.
-- A host with tables of its own leaves these empty and implements the Directory trait.

create schema if not exists postrider_identity;

create table postrider_identity.accounts (
    id         uuid primary key,
    handle     text not null unique,
    state      text not null default 'active' check (state in ('active', 'disabled')),
    created_at timestamptz not null default statement_timestamp()
);

create table postrider_identity.sessions (
    id         uuid primary key,
    account_id uuid not null references postrider_identity.accounts on delete cascade,
    created_at timestamptz not null default statement_timestamp(),
    expires_at timestamptz not null default statement_timestamp() + interval '30 days',
    revoked_at timestamptz,
    revoked_by text check (revoked_by in ('sign_out', 'administrator', 'security', 'account_deleted'))
);
create index sessions_of_account on postrider_identity.sessions (account_id) where revoked_at is null;

create table postrider_identity.oidc_clients (
    id                                  text primary key,
    name                                text not null,
    backchannel_logout_uri              text check (backchannel_logout_uri like 'https://%'),
    backchannel_logout_session_required boolean not null default false,
    id_token_signed_response_alg        text not null default 'ES256'
                                        check (id_token_signed_response_alg in ('ES256', 'RS256', 'EdDSA')),
    created_at                          timestamptz not null default statement_timestamp()
);

create table postrider_identity.oidc_authorization_codes (
    code_digest bytea primary key,
    client_id   text not null references postrider_identity.oidc_clients on delete cascade,
    session_id  uuid not null references postrider_identity.sessions on delete cascade,
    issued_at   timestamptz not null default statement_timestamp(),
    redeemed_at timestamptz
);

create table postrider_identity.oidc_session_clients (
    session_id     uuid not null references postrider_identity.sessions on delete cascade,
    client_id      text not null references postrider_identity.oidc_clients on delete cascade,
    sub            text not null,
    sid            text not null,
    first_token_at timestamptz not null default statement_timestamp(),
    primary key (session_id, client_id)
);
comment on table postrider_identity.oidc_session_clients is
    'Clients that received tokens from a session, with the sub and sid that their ID tokens carry. Filled by a trigger, so that no release can redeem a code and forget it.';

create function postrider_identity.note_session_client() returns trigger language plpgsql as $$
declare
    session postrider_identity.sessions;
begin
    -- Locked, so that a revocation that is under way either sees this client or ends the session first.
    select s.* into session from postrider_identity.sessions s
     where s.id = new.session_id and s.revoked_at is null
       for share;
    if not found then
        raise exception 'session % has ended: its codes are no longer redeemed', new.session_id
            using errcode = 'restrict_violation';
    end if;
    insert into postrider_identity.oidc_session_clients (session_id, client_id, sub, sid)
    values (session.id, new.client_id, session.account_id::text, session.id::text)
        on conflict (session_id, client_id) do nothing;
    return null;
end
$$;

create trigger note_session_client_on_redeem
    after update of redeemed_at on postrider_identity.oidc_authorization_codes
    for each row when (old.redeemed_at is null and new.redeemed_at is not null)
    execute function postrider_identity.note_session_client();

create trigger note_session_client_on_insert
    after insert on postrider_identity.oidc_authorization_codes
    for each row when (new.redeemed_at is not null)
    execute function postrider_identity.note_session_client();

create function postrider_identity.refuse_unrevoked_end() returns trigger language plpgsql as $$
begin
    raise exception 'session % is neither revoked nor expired: end it with revoke_sessions, which tells its clients', old.id
        using errcode = 'restrict_violation';
end
$$;

create trigger sessions_end_by_revocation
    before delete on postrider_identity.sessions
    for each row when (old.revoked_at is null and old.expires_at > statement_timestamp())
    execute function postrider_identity.refuse_unrevoked_end();
