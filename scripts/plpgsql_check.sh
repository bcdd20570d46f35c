#!/usr/bin/env bash
# plpgsql_check.sh - reads every PL/pgSQL function with the extension of that name: types, unused and shadowed names,
# statements that cannot run. Needs a temporary cluster: test/harness/cluster.sh run scripts/plpgsql_check.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../sql"

run_psql()
{
    psql --no-psqlrc --quiet --tuples-only --no-align --set=ON_ERROR_STOP=1 --dbname="$PAWL_TEST_URL" "$@"
}

shopt -s nullglob
mapfile -t listed < <(sed 's/#.*//; s/ \(unless\|view\) .*//; /^[[:space:]]*$/d' schema.txt)
mapfile -t tables < <(printf '%s\n' "${listed[@]}" | grep '/tables.sql$')
mapfile -t definitions < <(printf '%s\n' "${listed[@]}" | grep -v '/tables.sql$')
files=(pg/queries.sql:migration_bootstrap_schema pg/queries.sql:migration_bootstrap "${tables[@]}" migrations/*.sql
       "${definitions[@]}")
for file in "${files[@]}"; do
    ../scripts/embed_sql.py --print . "$file" |
        PGOPTIONS='-c client_min_messages=warning' run_psql --single-transaction --file=- >/dev/null
done

# Findings that are no mistakes: an argument that keeps the planner from calling the function, a composite among several
# outputs, an output that is passed through with some of its elements changed, and variables whose assignment is made for its effect.
found=$(run_psql <<'SQL'
create extension plpgsql_check;
select format('%s line %s: %s: %s', p.oid::regprocedure, c.lineno, c.level, c.message)
  from pg_proc p
  join pg_language l on l.oid = p.prolang and l.lanname = 'plpgsql'
  join pg_namespace n on n.oid = p.pronamespace and n.nspname !~ '^pg_|^information_schema$|^public$'
  cross join lateral plpgsql_check_function_tb(p.oid, extra_warnings => true, performance_warnings => false) c
 where p.prorettype <> 'trigger'::regtype
   and (p.proname, c.message) not in (
     values ('_refuse_queue_name', 'unused parameter "queue_name"'),
            ('batch_judge', 'composite OUT variable "legs" is not single argument'),
            ('legs_run', 'composite OUT variable "legs" is not single argument'),
            ('legs_run_one', 'composite OUT variable "legs" is not single argument'),
            ('lock_limit', 'never read variable "v_limit"'),
            ('refusals_under_lock', 'parameter "sentences" is never read'),
            ('txn_base', 'never read variable "v_xid"'))
 order by 1;
SQL
)
if [ -n "$found" ]; then
    echo "$found"
    exit 1
fi
