-- 0036_wallet_verdict.sql - the row that every function of a posting returns, in one place instead of one per function.

create type wallet.verdict as (
  ord integer,
  txn_id uuid,
  is_new boolean,
  refusal text,  -- null: posted
  sentence text, -- the reason of the refusal
  differs text,  -- the field in which the key's first use differs: nothing was done
  kind text,
  owner text,
  other text,
  asset text,
  amount bigint,
  balance_before bigint, -- the owner's, when it was posted, as are the next four
  balance bigint,
  held bigint,
  available bigint,
  version bigint,
  balance_now bigint, -- the owner's, now
  number bigint,
  at timestamptz
);
