-- What an audit needs to tell what is late from what has just begun to wait. Nothing that an older release reads changes,
-- and no row is rewritten.

-- Hosts queue behind this lock while it is waited for: rather fail, and be run again, than hold them up.
set local lock_timeout = '5s';

alter table postrider.delivery_orderings add column released_at timestamptz not null default '-infinity';
comment on column postrider.delivery_orderings.released_at is
    'When a delivery of the key last ended: the next one of the key has waited for a claim since then, whatever its due_at.';

alter table postrider.delivery_releases add column postponed_at timestamptz not null default statement_timestamp();
