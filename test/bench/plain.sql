-- plain.sql - the ordinary way, to compare with: a transaction of six statements per request, a balance by summing. The tables.
drop schema if exists plain cascade;
create schema plain;
create table plain.wallets (id bigint generated always as identity primary key, owner_id text not null unique);
create table plain.transactions (id uuid primary key, kind text not null, created_at timestamptz not null default now());
create table plain.ledgers (
  id bigint generated always as identity primary key,
  transaction_id uuid not null references plain.transactions,
  wallet_id bigint not null references plain.wallets,
  amount bigint not null,
  unique (transaction_id, wallet_id)
);
create index on plain.ledgers (wallet_id) include (amount);
insert into plain.wallets (owner_id) select 'w' || n from generate_series(0, 1000) n;
vacuum analyze plain.wallets;
