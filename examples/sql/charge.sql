-- charge.sql - a handler for `pawl work` in SQL: charges an account exactly once.
--
--     psql "$(pawl db url)" -f charge.sql -c "insert into shop.account values ('ann', 1000)"
--     pawl send shop charge '{"account": "ann", "amount": 250}'
--     pawl work shop --sql shop.charge
--
-- The function runs in the transaction that ends its command. Both happen or neither, whatever dies in between, so there is
-- nothing to do here about being called twice. It is SECURITY DEFINER, so it runs with the rights of its owner and not with those of the
-- worker, which may have more; pawl refuses it otherwise.

create schema if not exists shop;

create table if not exists shop.account (
  name text primary key,
  balance bigint not null constraint account_balance_check check (balance >= 0)
);

create or replace function shop.charge (payload jsonb, command_id uuid)
  returns jsonb
  language plpgsql security definer set search_path = shop, pg_temp
as $$
declare
  v_amount bigint := (payload ->> 'amount')::bigint;
  v_balance bigint;
begin
  if v_amount is null or v_amount <= 0 then
    raise exception 'amount must be above 0' using errcode = 'QU070'; -- permanent: to the troubleshooting queue
  end if;
  update shop.account a set balance = a.balance - v_amount
  where a.name = payload ->> 'account' and a.balance >= v_amount
  returning a.balance into v_balance;
  if not found then
    raise exception 'no such account, or not enough on it' using errcode = 'QU065'; -- a business refusal
  end if;
  return jsonb_build_object('charged', v_amount, 'balance', v_balance); -- any other exception is tried again
end
$$;
