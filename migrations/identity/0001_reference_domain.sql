-- The reference domain: accounts, sessions and OIDC clients, so that the channels work end to end.
-- A host with tables of its own leaves these empty.
select 1;
