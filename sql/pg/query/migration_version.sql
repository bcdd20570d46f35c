-- migration_version.sql - the newest migration that was applied; 0: none. Columns: value.
select coalesce(max(version), 0)::bigint as value from pawl.migration
