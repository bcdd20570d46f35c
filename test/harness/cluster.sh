#!/usr/bin/env bash
# cluster.sh - one temporary PostgreSQL for one command.
#
#     test/harness/cluster.sh run meson test -C build-asan
#
# COMMAND finds in its environment:
#   PAWL_TEST_URL  database "postgres" as the superuser "postgres"
#   PAWL_TEST_RUN  a folder of this run; gone afterwards, with every server that was started below it
#   PAWL_TEST_BIN  where initdb, pg_ctl and psql live; given beforehand, that installation is used instead of the newest
# The exit status is COMMAND's. Nothing is durable and nothing listens on TCP. Each run has a folder and a socket of its
# own, so runs do not meet. The folder is below PAWL_TEST_DIR if that is given, else in memory (/dev/shm) where there is space,
# else below /tmp. PAWL_TEST_KEEP=1 leaves the folder behind, with the server's log, and says where it is.
set -euo pipefail

usage() { sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2; exit 2; }

die() { echo "cluster.sh: $*" >&2; exit 1; }

# The newest server of 15 or later; PATH is the fallback, for installations that are not Debian's.
bin_find() {
    local bin version
    if [[ ${PAWL_TEST_BIN:-} ]]; then
        [[ -x $PAWL_TEST_BIN/initdb && -x $PAWL_TEST_BIN/pg_ctl ]] || die "no initdb and pg_ctl in $PAWL_TEST_BIN"
        echo "$PAWL_TEST_BIN"
        return
    fi
    for bin in $(printf '%s\n' /usr/lib/postgresql/*/bin | sort -t/ -k5,5nr) \
        "$(dirname "$(command -v initdb || echo /)")"; do
        [[ -x $bin/initdb && -x $bin/pg_ctl ]] || continue
        version=$("$bin/initdb" --version | grep -oE '[0-9]+' | head -n1)
        if ((version >= 15)); then
            echo "$bin"
            return
        fi
    done
    die "no PostgreSQL 15 or later found: install the package postgresql"
}

# Each test creates and drops a database of hundreds of files. On ext4, which does not reuse the inodes of deleted files for
# minutes and searches past them, that takes more than half of a run's CPU time. A run needs some 2 GB at most.
space_kb=$((4 * 1024 * 1024))
folder_choose() {
    local free available
    if [[ ${PAWL_TEST_DIR:-} ]]; then
        echo "$PAWL_TEST_DIR"
        return
    fi
    free=$(df --type=tmpfs --output=avail /dev/shm 2>/dev/null | tail -n1 || true)
    available=$(awk '$1 == "MemAvailable:" { print $2 }' /proc/meminfo 2>/dev/null || true)
    if [[ -w /dev/shm ]] && ((${free:-0} >= space_kb && ${available:-0} >= space_kb)); then echo /dev/shm; else echo /tmp; fi
}

# PostgreSQL refuses to run as root.
as_owner() {
    if ((EUID == 0)); then runuser -u postgres -- "$@"; else "$@"; fi
}

cluster_start() {
    chmod 755 "$run"
    ((EUID != 0)) || chown postgres "$run"
    as_owner "$bin/initdb" -D "$run/data" -U postgres -A trust -E UTF8 --locale=C --no-sync --no-instructions \
        >"$run/initdb.log" 2>&1 || { cat "$run/initdb.log" >&2; die "initdb failed"; }
    as_owner tee -a "$run/data/postgresql.conf" >/dev/null <<-CONF
		listen_addresses = ''
		unix_socket_directories = '$run'
		port = 5432
		fsync = off
		synchronous_commit = off
		full_page_writes = off
		max_connections = 300
		shared_buffers = 128MB
		log_line_prefix = '%m [%p] %d %a '
	CONF
    # Tests that stop and start a server of their own copy this: much quicker than another initdb.
    as_owner cp -a "$run/data" "$run/datadir-template"
    as_owner "$bin/pg_ctl" -D "$run/data" -l "$run/log" -s -w -t 60 start ||
        { cat "$run/log" >&2; die "PostgreSQL did not start"; }
}

# The cluster, and the private servers of tests that were killed before they could stop them.
servers_stop() {
    local pidfile
    for pidfile in "$run"/*/postmaster.pid; do
        [[ -e $pidfile ]] || continue
        as_owner "$bin/pg_ctl" -D "$(dirname "$pidfile")" -s -m immediate stop 2>/dev/null || true
    done
}

cleanup() {
    local status=$?
    trap - EXIT
    trap '' INT TERM HUP
    servers_stop
    if [[ ${PAWL_TEST_KEEP:-} ]]; then echo "cluster.sh: kept $run" >&2; else rm -rf "$run"; fi
    exit "$status"
}

# The command is a job with a process group of its own: a signal reaches all of it, at once, and then we clean up.
command_run() {
    local status=0 job
    set -m
    "$@" <&0 &
    job=$!
    set +m
    trap 'kill -INT -- -$job 2>/dev/null || true' INT
    trap 'kill -TERM -- -$job 2>/dev/null || true' TERM HUP
    wait "$job" || status=$?
    # A trapped signal ends wait early; the command may still be on its way out.
    while kill -0 "$job" 2>/dev/null; do
        status=0
        wait "$job" || status=$?
    done
    return "$status"
}

# Of all programs that COMMAND ran, at least one must have had a test that PAWL_TEST names.
filter_check() {
    [[ -e $run/filter.missed && ! -e $run/filter.matched ]] || return 0
    die "PAWL_TEST=\"${PAWL_TEST:-}\" is part of no test's name: nothing was tested"
}

[[ ${1:-} == run && $# -ge 2 ]] || usage
shift
bin=$(bin_find)
run=$(mktemp -d "$(folder_choose)/pawl-test.XXXXXX")
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
cluster_start
export PAWL_TEST_URL="postgresql://postgres@/postgres?host=$run&port=5432" PAWL_TEST_RUN=$run PAWL_TEST_BIN=$bin
command_run "$@"
filter_check
