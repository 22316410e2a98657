-- The index of owners took a quarter of the work that a delivery is for PostgreSQL, in every channel, for what only accounts that
-- are purged need: identity migration 3 makes one of announcements alone. An older release goes on as before.

-- Hosts queue behind this lock while it is waited for: rather fail, and be run again, than hold them up.
set local lock_timeout = '5s';

drop index postrider.deliveries_by_owner;
