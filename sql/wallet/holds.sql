-- holds.sql - holds, with the sum of their captures.
create or replace view wallet.holds as
  select h.id, h.wallet_id, h.amount,
         coalesce((select sum(c.amount) from wallet.txn c
                   where c.ref = h.id and c.kind = 'capture' and c.refusal is null), 0)::bigint as captured,
         h.status, h.expires_at
  from wallet.hold h;
