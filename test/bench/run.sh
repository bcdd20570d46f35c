#!/usr/bin/env bash
# run.sh - the figures of docs/benchmarks.md, on this machine, with nothing else running. Called by ./dev bench.
#
# Prints a Markdown table. Each figure is the median of several runs; the runs are shown beside it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

runs=${PAWL_BENCH_RUNS:-5}
seconds=${PAWL_BENCH_SECONDS:-5}
home=$(mktemp -d /tmp/pawl-bench.XXXXXX)
chmod 755 "$home"
export PAWL_HOME=$home/home PAWL_LOG=warn
pid=

finish()
{
    if [ -n "$pid" ]; then stop; fi
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

first=() again=() memory=() live=()
for ((i = 0; i < runs; i++)); do
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
    live+=("$(wrk -t2 -c64 -d"${seconds}s" "http://127.0.0.1:$port/health/live" | awk '/Requests\/sec/ {print int($2)}')")
    stop
done
mapfile -t pool < <(for ((i = 0; i < runs; i++)); do build/test/bench/pool_bench "$(build/pawl db url)" | awk '/lease/ {print $4}'; done)
build/pawl db stop >/dev/null

echo "| figure | median | runs |"
echo "|---|---|---|"
row "first start with a private PostgreSQL, until ready" ms "${first[@]}"
row "start on an existing database, until ready" ms "${again[@]}"
row "resident memory of the idle daemon" MB "${memory[@]}"
row "GET /health/live, 64 connections, wrk on the same machine" /s "${live[@]}"
row "lease and return a pooled connection, one thread" ns "${pool[@]}"
