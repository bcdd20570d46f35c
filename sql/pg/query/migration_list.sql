-- What was applied, in order. Columns: version integer, name, checksum, applied_at text.
select version, name, checksum, to_char(applied_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as applied_at
from pawl.migration
order by version
