-- What a claim needs to tell a delivery that kills its workers from one that was often retried and then lost one worker.
-- An older release neither reads nor writes it.

-- Hosts queue behind this lock while it is waited for: rather fail, and be run again, than hold them up.
set local lock_timeout = '5s';

alter table postrider.deliveries add column lapsed_leases smallint not null default 0;
comment on column postrider.deliveries.lapsed_leases is
    'How many leases in a row ran out with no outcome recorded, as of the last claim: each doubles the next lease.';
