#!/usr/bin/env bash
# run.sh - the figures of docs/benchmarks.md, on this machine, with nothing else running. Called by ./dev bench.
#
#     run.sh [ground|bus|http|ledger|hold|all]...     all but hold unless given; hold takes twice ten minutes
#     run.sh peers [SECTION]...                       ratios to other programs: see peers.py
#
# Prints a Markdown table. Each figure is the median of several runs; the runs are shown beside it. Everything runs on a
# private PostgreSQL in a temporary folder, with its defaults: synchronous_commit and fsync are on.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

if [ "${1:-}" = peers ]; then exec test/bench/peers.py "${@:2}"; fi

runs=${PAWL_BENCH_RUNS:-5}
seconds=${PAWL_BENCH_SECONDS:-5}
count=${PAWL_BENCH_COUNT:-200000}
hold=${PAWL_BENCH_HOLD:-10m}
home=$(mktemp -d /tmp/pawl-bench.XXXXXX)
chmod 755 "$home"
export PAWL_HOME=$home/home PAWL_LOG=warn PAWL_ADMIN_TOKEN=bench-0123456789abcdef
unset PAWL_DATABASE_URL PAWL_LISTEN_DATABASE_URL DATABASE_URL
pid=

finish()
{
    if [ -n "$pid" ]; then stop; fi
    if [ -d "$PAWL_HOME" ]; then build/pawl db stop >/dev/null 2>&1 || true; fi
    rm -rf "$home"
}
trap finish EXIT

median() { printf '%s\n' "$@" | sort -n | awk '{v[NR] = $1} END {print v[int((NR + 1) / 2)]}'; }

# row NAME UNIT VALUE...
row() { echo "| $1 | $(median "${@:3}") $2 | ${*:3} |"; }

now_ms() { date +%s%3N; }

# serve: start pawl in the background and wait for its first line; sets pid, port and start_ms.
serve()
{
    local begin line
    begin=$(now_ms)
    coproc SERVE { exec build/pawl serve --listen 127.0.0.1:0; }
    pid=$SERVE_PID
    IFS= read -r line <&"${SERVE[0]}"
    start_ms=$(($(now_ms) - begin))
    port=${line##*:}
}

stop()
{
    kill "$pid"
    wait "$pid" || true
    pid=
}

# load WRK ARGUMENT...: requests a second over 64 connections; all of them have to be answered as they should.
load()
{
    local said
    said=$(wrk -t2 -c64 -d"${seconds}s" "$@")
    if grep -qE '^ *(Non-2xx|Socket errors|Refused: [1-9])' <<<"$said"; then
        echo "$said" >&2
        return 1
    fi
    awk '/Requests\/sec/ {print int($2)}' <<<"$said"
}

# bench NAME [FLAG...]: the rows of one bench of the program.
bench() { build/pawl bench "$@" --json | test/bench/rows.py; }

section_ground()
{
    local first=() again=() memory=() live=() pool=() value i
    for ((i = 0; i < runs; i++)); do
        build/pawl db stop >/dev/null
        rm -rf "$PAWL_HOME"
        serve
        first+=("$start_ms")
        stop
    done
    build/pawl db start >/dev/null
    for ((i = 0; i < runs; i++)); do
        serve
        again+=("$start_ms")
        curl -sf "http://127.0.0.1:$port/health/ready" >/dev/null
        memory+=("$(awk '/VmRSS/ {printf "%.1f", $2 / 1024}' "/proc/$pid/status")")
        value=$(load "http://127.0.0.1:$port/health/live")
        live+=("$value")
        stop
        pool+=("$(build/test/bench/pool_bench "$(build/pawl db url)" | awk '/lease/ {print $4}')")
    done
    row "first start with a private PostgreSQL, until ready" ms "${first[@]}"
    row "start on an existing database, until ready" ms "${again[@]}"
    row "resident memory of the idle daemon" MB "${memory[@]}"
    row "GET /health/live, 64 connections, wrk on the same machine" /s "${live[@]}"
    row "lease and return a pooled connection, one thread" ns "${pool[@]}"
}

section_bus()
{
    bench commands --rounds "$runs" --count "$count"
    bench commands --rounds "$runs" --count "$count" --delayed $((count * 5))
    bench commands --rounds "$runs" --count "$count" --processes 2
    bench commands --rounds "$runs" --count "$count" --single --clients 64
    bench latency --seconds $((seconds * 4))
}

# Nobody handles meanwhile: this is about the door.
section_http()
{
    local kind values value i
    serve
    for kind in "" ids; do
        values=()
        for ((i = 0; i < runs; i++)); do
            value=$(load -s test/bench/send.lua "http://127.0.0.1:$port" -- ${kind:+"$kind"})
            values+=("$value")
        done
        row "POST /v1/commands, 64 connections, one command each${kind:+, ids by the client}" /s "${values[@]}"
    done
    stop
}

# plain WALLETS CLIENTS: the ordinary way.
plain()
{
    "$postgres_bin"/pgbench -n -M prepared -c "$2" -j "$(($2 < 2 ? 1 : 2))" -T "$seconds" -D wallets="$1" -f test/bench/plain_post.sql "$database" |
        awk '/^tps/ {print int($3)}'
}

# The ordinary way is measured in the same run, in turns.
section_ledger()
{
    local kind connections i value said any=() hot=() batch=() one=() look=() p99=() plain_any=() plain_hot=() plain_one=()
    serve
    database=$(build/pawl db url --admin)
    postgres_bin=$(printf '%s\n' /usr/lib/postgresql/*/bin | sort -V | tail -1)
    "$postgres_bin"/psql -qX "$database" -f test/bench/plain.sql
    "$postgres_bin"/psql -qXAt "$database" >/dev/null <<-'SQL'
		select count(*) from wallet.open(array(select 'w' || n from generate_series(1, 1000) n));
		select count(*) from wallet.post(array_fill('topup'::text, array[1000]), array(select gen_random_uuid() from generate_series(1, 1000)),
		  array(select 'w' || n from generate_series(1, 1000) n), array_fill(1000000000::bigint, array[1000]));
	SQL
    for ((i = 0; i < runs; i++)); do
        for kind in any hot batch; do
            connections=64
            if [ $kind = batch ]; then connections=2; fi
            said=$(wrk -t2 -c"$connections" -d"${seconds}s" --latency -s test/bench/transfer.lua "http://127.0.0.1:$port" -- $kind)
            if ! grep -q '^Refused: 0$' <<<"$said"; then echo "$said" >&2; return 1; fi
            value=$(awk '/Requests\/sec/ {print int($2)}' <<<"$said")
            case $kind in
            any) any+=("$value"); p99+=("$(awk '/^P99/ {print $2}' <<<"$said")") ;;
            hot) hot+=("$value") ;;
            batch) batch+=($((value * 1000))) ;;
            esac
        done
        plain_any+=("$(plain 1000 64)")
        plain_hot+=("$(plain 1 64)")
        plain_one+=("$(plain 1000 1)")
        one+=("$(wrk -t1 -c1 -d"${seconds}s" -s test/bench/transfer.lua "http://127.0.0.1:$port" -- any | awk '/Requests\/sec/ {print int($2)}')")
        value=$(load -s test/bench/look.lua "http://127.0.0.1:$port" -- 1000)
        look+=("$value")
    done
    stop
    row "POST /v1/transfers, 64 connections, any of 1,000 wallets" /s "${any[@]}"
    row "the same, 99 of 100 are answered within" ms "${p99[@]}"
    row "the ordinary way, six statements, 64 clients" /s "${plain_any[@]}"
    row "POST /v1/transfers, 64 connections, all from one wallet" /s "${hot[@]}"
    row "the ordinary way, all on one wallet" /s "${plain_hot[@]}"
    row "POST /v1/transfers, 1 connection" /s "${one[@]}"
    row "the ordinary way, 1 client" /s "${plain_one[@]}"
    row "POST /v1/transfers/batch, 1,000 transfers each, 2 connections" "transfers/s" "${batch[@]}"
    row "GET /v1/wallets/{owner}, 64 connections" /s "${look[@]}"
    bench transfers --rounds "$runs" --count "$((count / 2))" --clients 256
    bench transfers --rounds "$runs" --count "$((count / 2))" --hot
    bench transfers --rounds "$runs" --count "$((count / 2))" --arrays 1000
    bench transfers --rounds "$runs" --count "$((count / 100))" --clients 1
    bench transfers --rounds "$runs" --history 1000000
    bench transfers --rounds "$runs" --verify 1000000
}

section_hold()
{
    bench commands --hold "$hold"
    bench commands --hold-xid "$hold"
}

if (($# == 0)); then set -- ground bus http ledger; fi
if [ "$1" = all ]; then set -- ground bus http ledger hold; fi
for section in "$@"; do
    if [[ ! $section =~ ^(ground|bus|http|ledger|hold)$ ]]; then
        sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
        exit 2
    fi
done

build/pawl db start >/dev/null
echo "| figure | median | runs |"
echo "|---|---|---|"
for section in "$@"; do "section_$section"; done
