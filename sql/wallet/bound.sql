-- bound.sql - what an API key that is bound to owners may touch: see bus/bound.sql. "@system" is in no binding: its balance is that of all owners.

create or replace function wallet.bound_owner (p_owner text, p_patterns text[])
  returns boolean
  language sql immutable
as $$
  select p_patterns is null or (p_owner !~ '^@' and pawl.bound_text(p_owner, p_patterns))
$$;

-- Is every owner of this transaction, or of this hold, within the binding? @system may be the other side. False: there is none, too.
create or replace function wallet.bound_txn (p_txn_id uuid, p_patterns text[])
  returns boolean
  language sql stable security definer set search_path = wallet, pawl, pg_temp
  set plan = index
as $$
  select coalesce(bool_and(o.owner = '@system' or wallet.bound_owner(o.owner, p_patterns))
                  and bool_or(wallet.bound_owner(o.owner, p_patterns)), false)
  from wallet.txn t
  cross join lateral (
    select wallet.owner_of(t.wallet_id)
    union all
    select wallet.owner_of(t.other_id) where t.other_id is not null
    union all
    select w.owner from wallet.entry e join wallet.wallet w on w.id = e.wallet_id where e.txn = t.id
    union all
    select l ->> 'owner' from jsonb_array_elements(case when jsonb_typeof(t.request -> 'legs') = 'array' then t.request -> 'legs' else '[]' end) l
    where l ? 'owner') o (owner)
  where t.txn_id = p_txn_id
$$;
