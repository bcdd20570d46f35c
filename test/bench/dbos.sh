#!/usr/bin/env bash
# dbos.sh - processes of three steps against workflows of three steps of DBOS's TypeScript library, in turns, in processes a second.
#
#     pawl db start && test/bench/dbos.sh "$(pawl db url --admin)" [ROUNDS [COUNT [CLIENTS [PAWL_CLIENTS]]]]
#
# URL is libpq's, of a role that may create databases; the databases are dropped afterwards.
# Installs npm package @dbos-inc/dbos-sdk in a temporary folder. CLIENTS (32) workflows run at the same time in one Node.js process. pawl runs
# `bench processes` (processes started before, the worker claims them) and `bench processes --closed` (each client starts one and waits for its
# end) with PAWL_CLIENTS (256) at the same time, and --closed with CLIENTS. Both use the same server. Prints a line per round and the median of
# the ratios. Needs ./dev build, Node.js 20 and npm.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

url=$1 rounds=${2:-3} count=${3:-3000} clients=${4:-32} many=${5:-256}
version=${PAWL_BENCH_DBOS:-5.3.0}
pawl=${PAWL_BIN:-build/pawl}
folder=$(mktemp -d)
name=pawl_bench_dbos_$$
run_sql() { psql -qXAt -v ON_ERROR_STOP=1 -d "$url" -c "$1" >/dev/null; }
trap 'rm -rf "$folder"; run_sql "drop database if exists $name with (force)"' EXIT
export PAWL_LOG=error PAWL_DATABASE_URL=$url

npm install --silent --no-fund --no-audit --prefix "$folder" "@dbos-inc/dbos-sdk@$version" >/dev/null
cp test/bench/dbos.mjs "$folder/"
run_sql "create database $name"
theirs=$(sed -E "s#^([a-z]+://[^/]*/)[^?]*#\1$name#; s#@/#@localhost/#" <<<"$url") # a URL of JavaScript has a host; the parameter host wins

dbos() { node "$folder/dbos.mjs" "$theirs" "$count" "$clients" | tail -1; }
# figure NAME FLAGS...: the median that the bench reports under this name
figure() { "$pawl" bench processes --rounds 1 --json "${@:3}" 2>/dev/null | python3 -c "
import json, sys
print(round(next(f['median'] for f in json.load(sys.stdin)['figures'] if (f['section'], f['figure']) == ('$1', '$2'))))"; }
ours() { figure run processes --count $((count * 8)) --clients "$many"; }
closed() { figure closed 'processes, from start to end' --closed --count $((count * 2)) --clients "$1"; }

for ((i = 0; i < rounds; i++)); do
    if ((i % 2)); then
        dbos=$(dbos) run=$(ours) closed=$(closed "$many") few=$(closed "$clients")
    else
        few=$(closed "$clients") closed=$(closed "$many") run=$(ours) dbos=$(dbos)
    fi
    echo "$dbos $run $closed $few"
done | tee "$folder/out" |
    awk -v n="$clients" -v m="$many" '{printf "DBOS %d at once %d/s; pawl %d at once: run %d/s (%.1f times), start to end %d/s (%.1f times); %d at once, start to end %d/s (%.1f times)\n", n, $1, m, $2, $2 / $1, $3, $3 / $1, n, $4, $4 / $1}'
awk '{print $2 / $1}' "$folder/out" | sort -n | awk '{ratio[NR] = $1} END {printf "median ratio of processes run: %.1f\n", ratio[int((NR + 1) / 2)]}'
