#!/usr/bin/env bash
# growth.sh - what the bus costs when it holds COUNT ended commands: sizes, plans, buffers and WAL, not times.
#
#     test/bench/growth.sh COUNT [FOLDER]
#
# Starts a PostgreSQL of its own in FOLDER (default: below /tmp), fills it, measures and removes it. Room on the disk: some 420 bytes
# per command. The rows are those that sending and completing COUNT commands would leave, 30 days' worth; they are written in bulk,
# because only what comes afterwards is measured. PAWL_BIN: the program, default build/pawl.
set -euo pipefail
export LC_ALL=C

die() { echo "growth.sh: $*" >&2; exit 1; }

count=${1:?usage: growth.sh COUNT [FOLDER]}
folder=${2:-$(mktemp -d /tmp/pawl-growth-XXXXXX)}
root=$(cd "$(dirname "$0")/../.." && pwd)
pawl=${PAWL_BIN:-$root/build/pawl}
[[ -x $pawl ]] || die "no program at $pawl: run ./dev build, or set PAWL_BIN"
bin=${PAWL_TEST_BIN:-$(printf "%s\n" /usr/lib/postgresql/*/bin | sort -t/ -k5,5nr | head -n1)}

as_owner() { if ((EUID == 0)); then runuser -u postgres -- "$@"; else "$@"; fi; }
sql() { "$bin/psql" -XqAt -v ON_ERROR_STOP=1 -h "$folder" -U postgres -d postgres "$@"; }

finish() {
    [[ ! -d $folder/data ]] || as_owner "$bin/pg_ctl" -D "$folder/data" -m immediate stop >/dev/null 2>&1 || true
    rm -rf "$folder"
}
trap finish EXIT

mkdir -p "$folder"
((EUID != 0)) || chown postgres "$folder"
as_owner "$bin/initdb" -D "$folder/data" -U postgres -A trust -E UTF8 --locale=C --no-sync --no-instructions >/dev/null
# wal_level = minimal: the bulk load writes no WAL.
as_owner tee -a "$folder/data/postgresql.conf" >/dev/null <<-CONF
	listen_addresses = ''
	unix_socket_directories = '$folder'
	fsync = off
	synchronous_commit = off
	full_page_writes = off
	autovacuum = off
	shared_buffers = 1GB
	maintenance_work_mem = 1GB
	max_wal_size = 8GB
	wal_level = minimal
	max_wal_senders = 0
	max_parallel_maintenance_workers = 2
CONF
as_owner "$bin/pg_ctl" -D "$folder/data" -l "$folder/log" -w start >/dev/null
PAWL_DATABASE_URL="postgresql://postgres@/postgres?host=$folder" "$pawl" migrate >/dev/null

echo "## $count commands"
sql -c "select from pawl.send('shop', array['charge'], array['1'::jsonb])"
# Both tables at the same time; keys are built after the load.
load() { sql -v count="$count" -v domain="$(sql -c "select pawl.domain_find('shop')")"; }
load <<'SQL' &
begin;
truncate pawl.command, pawl.ready;
alter table pawl.command drop constraint command_pkey, drop constraint command_key;
insert into pawl.command (id, domain_id, command_id, type, payload, priority, max_attempts, created_at, sender)
select n, :domain, -- ids of version 7, in the order of sending
       encode(int8send(((1700000000000 + n / 100) << 16) | 28672) || int8send(hashint8extended(n, 0) & 4611686018427387903 | -9223372036854775808), 'hex')::uuid,
       'charge', '{"order": 123456, "amount": 1200, "currency": "EUR"}', 4, 3, now() - (:count - n) * (interval '30 days' / :count), 'web'
from generate_series(1, :count::bigint) n;
alter table pawl.command add constraint command_pkey primary key (id);
alter table pawl.command add constraint command_key unique (command_id, domain_id);
commit;
vacuum (analyze) pawl.command;
SQL
loader=$!
load <<'SQL'
begin;
truncate pawl.outcome;
alter table pawl.outcome drop constraint outcome_pkey;
insert into pawl.outcome (id, domain_id, status, attempts, ended_at, token, started_at, worker)
select n, :domain, 'COMPLETED', 1, t.at, n, t.at, 'host-1/4711'
from generate_series(1, :count::bigint) n
cross join lateral (select now() - (:count - n) * (interval '30 days' / :count) as at) t;
alter table pawl.outcome add constraint outcome_pkey primary key (id);
commit;
vacuum (analyze) pawl.outcome;
SQL
wait "$loader"
sql -c "select setval('pawl.command_seq', $count)" -c "select setval('pawl.lease_seq', $count)" >/dev/null

echo "### bytes per command"
sql -F ' | ' -v count="$count" <<'SQL'
select c.relname, pg_size_pretty(pg_relation_size(c.oid)), round(pg_relation_size(c.oid)::numeric / :count, 1)
from pg_class c
where c.relnamespace = 'pawl'::regnamespace and pg_relation_size(c.oid) > :count and c.relkind in ('r', 'i')
order by pg_relation_size(c.oid) desc;
SQL

# A statement in a warm session: buffers that it touches, and WAL that it writes, per item.
cost() { # NAME ITEMS STATEMENT
    local lsn="select 'lsn ' || (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)"
    sql -c "$3" -c "$lsn" -c "explain (analyze, buffers, costs off, timing off, summary off) $3" -c "$lsn" | awk -v name="$1" -v items="$2" '
        /^lsn/ { wal = $2 - was; was = $2 }
        /Buffers:/ && !seen { seen = 1; for (i = 1; i <= NF; i++) if ($i ~ /^(hit|read)=/) { split($i, p, "="); sum += p[2] } }
        END { printf "%s: %.1f buffers, %.0f bytes of WAL per item\n", name, sum / items, wal / items }'
}

echo "### buffers and WAL"
cost "send 1000" 1000 "select count(*)
    from pawl.send('shop', array_fill('charge'::text, array[1000]), array_fill('{\"order\": 1}'::jsonb, array[1000]))"
cost "claim 100 from the beginning" 100 "select count(*)
    from pawl.claim(pawl.domain_find('shop'), 100, 3600000, array_fill(0::bigint, array[10]), null, 'w')"
cost "claim, complete 100" 100 "select count(*)
    from (select array_agg(c.id) as ids, array_agg(c.token) as tokens
          from pawl.claim(pawl.domain_find('shop'), 100, 3600000, array_fill(0::bigint, array[10]), null, 'w') c) c,
         pawl.settle(c.ids, c.tokens, array_fill('complete'::text, array[100])) s"
cost "send 100 known ids again" 100 "select count(*)
    from (select array_agg(c.command_id) as ids, array_agg(c.payload) as payloads
          from pawl.command c where c.id between $count / 2 and $count / 2 + 99) i,
         pawl.send('shop', array_fill('charge'::text, array[100]), i.payloads, i.ids)"
cost "show one" 1 "select pawl.command_show((select c.command_id from pawl.command c where c.id = $count / 3))"
cost "list 100 completed" 100 "select count(*) from pawl.command_list('shop', 'COMPLETED', null, null, 100)"
cost "list 100 failed (none)" 1 "select count(*) from pawl.command_list('shop', 'FAILED', null, null, 100)"
cost "audit of one" 1 "select count(*) from pawl.audit where id = $count / 3"
cost "backlog" 1 "select pawl.backlog()"
cost "delete 10000 ended" 10000 "select pawl.least_age_set('commands', '0'), pawl.prune_commands(10000, interval '0', null)"
echo "### retention of the audit: a week of 20,000 commands"
sql <<'SQL'
select count(*) as rows from pawl.kept_audit;
select pg_current_wal_insert_lsn() as was \gset
select pawl.prune_audit(1000, interval '1 day');
select pg_current_wal_insert_lsn() - :'was'::pg_lsn as bytes_of_wal;
select count(*) as rows from pawl.kept_audit;
SQL
echo "### plan of a look-up by key"
sql -c "explain (costs off) select c.id from pawl.command c where c.command_id = '00000000-0000-4000-8000-000000000001' and c.domain_id = 1"
echo "### plan of the audit of one command"
sql -c "explain (costs off) select * from pawl.audit where id = 1"
