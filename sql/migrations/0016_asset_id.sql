-- 0016_asset_id.sql - asset ids are reused after transactions that roll back: see wallet.asset_id.
alter table wallet.asset alter column id set cycle;
