-- plain_post.sql - for pgbench: one request of the ordinary way (plain.sql). -D wallets=1: all on one wallet.
\set n random(1, :wallets)
\set high random(0, 4294967295)
\set low random(0, 281474976710655)
begin;
select id from plain.wallets where owner_id = 'w' || :n for update \gset wallet_
insert into plain.transactions (id, kind)
values ((lpad(to_hex(:high::bigint), 8, '0') || '-0000-4000-8000-' || lpad(to_hex(:low::bigint), 12, '0'))::uuid, 'topup') returning id \gset txn_
insert into plain.ledgers (transaction_id, wallet_id, amount) values (:txn_id, :wallet_id, 1);
insert into plain.ledgers (transaction_id, wallet_id, amount) values (:txn_id, 1, -1);
select sum(amount) from plain.ledgers where wallet_id = :wallet_id;
commit;
