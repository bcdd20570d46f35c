-- 0002_api_key.sql - who may call the HTTP interface.

-- One row per key. Written twice in its life: created, revoked. Never written by a request: there is no last_used.
create table pawl.api_key (
  id         bigint      generated always as identity primary key,
  name       text        not null check (name ~ '^[a-z][a-z0-9_.-]{0,62}$'), -- a letter first: never taken for an id
  hash       bytea       not null unique check (octet_length(hash) = 32),    -- SHA-256 of the token; the token is not kept
  scopes     text[]      not null
    check (cardinality(scopes) > 0 and scopes <@ array['read', 'wallet', 'command', 'process', 'rating', 'admin']),
  created_at timestamptz not null,
  expires_at timestamptz,
  revoked_at timestamptz
);

-- A name is free again once its key is revoked.
create unique index api_key_name on pawl.api_key (name) where revoked_at is null;
