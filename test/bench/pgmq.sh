#!/usr/bin/env bash
# pgmq.sh - schema pgmq against the extension's own SQL: read and archive, in turns, in messages a second.
#
#     test/harness/cluster.sh run test/bench/pgmq.sh FILE [ROUNDS [BATCH [CLIENTS]]]
#
# FILE is the extension's script (pgmq--1.11.1.sql; it is in the npm package @electric-sql/pglite-pgmq, dist/pgmq.tar.gz).
# Each round fills a queue in both databases and empties it with pgbench, two transactions a batch; the order changes from
# round to round. Prints a line per round and the median of the ratios. Needs ./dev build.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

file=$(realpath "$1") rounds=${2:-9} batch=${3:-100} clients=${4:-4}
count=${PAWL_BENCH_COUNT:-40000}
url=$PAWL_TEST_URL
script=$PAWL_TEST_RUN/pgmq-bench.sql
export PGOPTIONS='-c client_min_messages=error' PAWL_LOG=warn

database() { echo "${url/@\/postgres\?/@/$1?}"; }

run_sql() { "$PAWL_TEST_BIN/psql" -qXAt -v ON_ERROR_STOP=1 -d "$(database "$1")" >/dev/null; }

# rate DATABASE: fill the queue, empty it, print messages a second.
rate()
{
    run_sql "$1" <<-SQL
		select pgmq.drop_queue('bench');
		select pgmq.create('bench');
		select pgmq.send_batch('bench', array(select jsonb_build_object('n', n, 'text', repeat('x', 60)) from generate_series(1, $count) as n));
		vacuum analyze pgmq.q_bench;
		checkpoint;
	SQL
    "$PAWL_TEST_BIN/pgbench" -n -c "$clients" -j 2 -t $((count / batch / clients)) -f "$script" "$(database "$1")" |
        awk -v batch="$batch" '/^tps/ {print int($3 * batch)}'
}

cat >"$script" <<-SQL
	select coalesce(quote_literal(array_agg(msg_id)), 'null') as ids from pgmq.read('bench', 30, $batch) \gset
	select count(*) from pgmq.archive('bench', :ids::bigint[]);
SQL
run_sql postgres <<<'create database original; create database ours;'
run_sql original <"$file"
PAWL_DATABASE_URL=$(database ours) build/pawl migrate >/dev/null

for ((i = 0; i < rounds; i++)); do
    if ((i % 2)); then
        original=$(rate original) ours=$(rate ours)
    else
        ours=$(rate ours) original=$(rate original)
    fi
    awk -v ours="$ours" -v original="$original" 'BEGIN {printf "%d %d %.2f\n", ours, original, ours / original}'
done | tee "$PAWL_TEST_RUN/pgmq-bench.out" | sed 's/^/ours, original, ratio: /'
sort -n -k3,3 "$PAWL_TEST_RUN/pgmq-bench.out" | awk '{ratio[NR] = $3} END {print "median ratio: " ratio[int((NR + 1) / 2)]}'
