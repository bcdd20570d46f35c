-- append_only.sql - rows of the ledger are inserted, never updated or deleted: not by an application, not by the owner's functions.
-- Triggers on wallet.wallet, wallet.txn, wallet.entry and wallet.seal call it before each such statement, truncate included.
-- Errors: QW009.
create or replace function wallet.never ()
  returns trigger
  language plpgsql
as $$
begin
  raise exception '% on wallet.% is not possible: the ledger is append-only', lower(tg_op), tg_table_name using errcode = 'QW009';
end
$$;
