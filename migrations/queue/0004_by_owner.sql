-- What is done to the deliveries of one owner, and of one owner and subject: an account that is purged takes its
-- announcements with it. An older release goes on as before.

-- Hosts queue behind this lock while it is waited for: rather fail, and be run again, than hold them up.
set local lock_timeout = '5s';

-- Of unordered deliveries alone: an index of all would at times be chosen for what asks for a channel and a status, which
-- then walks the whole channel.
create index deliveries_by_owner on postrider.deliveries (channel, owner, subject) where ordering_key is null;
