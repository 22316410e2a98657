-- Claims that cost the same whatever has piled up: where a delivery stands in the index of what is due no longer changes
-- with its claim. An older release goes on as before: what it writes leaves ready_at where it was, or at its default,
-- and that is never later than due_at.

-- Hosts queue behind this lock while it is waited for: rather fail, and be run again, than hold them up.
set local lock_timeout = '5s';

alter table postrider.deliveries add column ready_at timestamptz not null default statement_timestamp();
comment on column postrider.deliveries.ready_at is
    'Its place in the index of what is due: when it became, or becomes, ready to be claimed. A claim leaves it as it is.';
update postrider.deliveries set ready_at = due_at where status = 'pending' and claimable and claim_token is null;

drop index postrider.deliveries_due;
create index deliveries_due on postrider.deliveries (channel, ready_at)
    where status = 'pending' and claimable;

-- Room on each page for the claimed versions of its rows, which change no indexed column.
alter table postrider.deliveries set (fillfactor = 50);
