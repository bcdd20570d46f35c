-- 0012_append_only_state.sql - no mutable row per wallet, no counter per hold.
--
-- A wallet's last entry says how it stands, so wallet.state was a copy that every posting updated. While any transaction with an
-- id stays open, vacuum may not remove the old versions of such a row, and each posting walks over all of them. From now on the
-- wallet's own row, which never changes, is what is locked, and the last entry is what is read. What was captured of a hold is the
-- sum of its captures (wallet.holds shows it); the hold's row changes once, when it ends.
--
-- Nothing is lost: the migration stops unless every value that it drops follows from the rows that stay.

lock table wallet.state, wallet.hold, wallet.wallet, wallet.entry, wallet.txn in access exclusive mode;

do $$
declare
  v_id bigint;
begin
  select coalesce(s.id, w.id) into v_id
  from wallet.state s
  full join wallet.wallet w on w.id = s.id
  left join lateral (select e.* from wallet.entry e where e.wallet_id = w.id order by e.version desc limit 1) e on true
  left join wallet.txn t on t.id = e.txn
  where (s.version, s.balance, s.held, s.floor, s.frozen, s.last_at)
        is distinct from (e.version, e.balance, coalesce(e.held, 0), coalesce(e.floor, 0), coalesce(e.frozen, false), t.at)
  limit 1;
  if found then
    raise exception 'wallet % differs between wallet.state and its last entry: run "pawl wallet verify" with the version that wrote it', v_id
      using errcode = 'QW009';
  end if;
  select h.id into v_id
  from wallet.hold h
  where h.captured <> coalesce((select sum(t.amount) from wallet.txn t where t.ref = h.id and t.kind = 'capture' and t.refusal is null), 0)
  limit 1;
  if found then
    raise exception 'hold % differs from the sum of its captures: run "pawl wallet verify" with the version that wrote it', v_id
      using errcode = 'QW009';
  end if;
end
$$;

-- Functions that only other functions of this schema call: their arguments change, and the definitions make them again.
do $$
declare
  v_function regprocedure;
begin
  for v_function in
    select p.oid::regprocedure from pg_proc p
    where p.pronamespace = 'wallet'::regnamespace
      and p.proname not in ('never', 'open', 'post', 'look', 'assets_of', 'balance_at', 'entries', 'statement', 'transaction', 'expire',
                            'expire_next', 'emit_to', 'seal', 'verify', 'verify_plan', 'verify_step', 'verify_note')
  loop
    execute format('drop function %s', v_function);
  end loop;
end
$$;

drop table wallet.state;
alter table wallet.hold drop column captured;
-- For new rows; wallet.verify looks at all.
alter table wallet.entry add constraint entry_held_check check (held >= 0) not valid;
-- A hold ends once, whatever key an operation comes with.
create unique index txn_hold_end on wallet.txn (ref) where kind in ('void', 'expire') and refusal is null;

-- A new stripe of @system is opened when all are locked. Its number comes from a sequence, because only such a number needs no
-- look at what others are about to insert.
alter table wallet.wallet alter column stripe type integer;
create sequence wallet.stripe_seq as integer minvalue 8 cycle;

-- What operations do: an element per wallet and operation, in order; and how the wallet stands after it.
drop type wallet.legs;
create type wallet.legs as (
  ords integer[], -- positions in the batch
  wallets bigint[],
  amounts bigint[],
  holds bigint[],
  mains boolean[], -- is it the wallet that the operation belongs to?
  balances bigint[],
  helds bigint[],
  floors bigint[],
  frozens boolean[],
  versions bigint[]
);
-- What operations refer to: an element per operation, null where there is nothing.
create type wallet.facts as (
  slots integer[], -- the same for operations that refer to the same hold or transaction
  lefts bigint[],  -- how much of it was left before the batch
  totals bigint[],
  wholes boolean[], -- it can only be refunded whole
  refusals text[],
  sentences text[]
);
