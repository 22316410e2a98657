-- An account that is purged takes its announcements with it. An older release goes on as before.

-- Hosts queue behind this lock while it is waited for: rather fail, and be run again, than hold them up.
set local lock_timeout = '5s';

create index deliveries_of_announcements on postrider.deliveries (owner)
    where channel = 'announcement' and ordering_key is null;
