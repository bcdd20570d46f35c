-- 0044_lease_extension_length.sql - how long the extension of a locked lease is.
--
-- The time alone does not tell a long lease from one that was extended by a clock that was ahead.

alter table pawl.lease_extension add column lease_ms integer; -- null: before this migration
