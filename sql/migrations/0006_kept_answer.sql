-- 0006_kept_answer.sql - answers kept under the header Idempotency-Key, for POSTs that have no id in their body.

-- One row per key. Written once, deleted after its time; a repeat within it reads the row.
create table pawl.kept_answer (
  key     uuid        primary key,                                -- made from the API key's name and the header
  request bytea       not null check (octet_length(request) = 32), -- hash of method, path and body: the same key for
                                                                   -- another request is refused
  status  integer     not null check (status between 200 and 299),
  body    text        not null,
  kept_at timestamptz not null
);

create index kept_answer_age on pawl.kept_answer (kept_at);
