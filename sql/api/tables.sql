-- tables.sql - who may call the HTTP interface, and answers kept under the header Idempotency-Key. How often rows
-- change:
--
--     api_key      one row per key; written when it is created, when it is revoked, and every 5 minutes while it is used
--     kept_answer  one row per key of a POST that has no id in its body; inserted once, deleted by age

create table pawl.api_key (
  id bigint generated always as identity primary key,
  name text not null check (name ~ '^[a-z][a-z0-9_.-]{0,62}$'), -- a letter first: never taken for an id
  hash bytea not null unique check (octet_length(hash) = 32), -- SHA-256 of the token; the token is not kept
  scopes text[] not null check (
    cardinality(scopes) > 0 and scopes <@ array['read', 'send', 'work', 'process', 'post', 'mint', 'wallets', 'operate', 'rating', 'admin']),
  -- Patterns of names, each a name or a prefix and "*": the key touches nothing else. Both null: it is not bound.
  domains text[],
  owners text[],
  created_at timestamptz not null,
  created_by text not null, -- the operator
  expires_at timestamptz,
  used_at timestamptz, -- the last use, some minutes late
  revoked_at timestamptz,
  constraint api_key_bound_check check ((domains is null) = (owners is null))
);
-- A name is free again once its key is revoked.
create unique index api_key_name on pawl.api_key (name) where revoked_at is null;

create table pawl.kept_answer (
  key uuid primary key, -- made from the API key's name and the header
  -- Hash of method, path and body: another request with this key is refused.
  request bytea not null check (octet_length(request) = 32),
  status integer not null check (status between 200 and 299),
  body text not null,
  kept_at timestamptz not null
);
create index kept_answer_age on pawl.kept_answer (kept_at);
