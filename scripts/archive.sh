#!/bin/sh
# archive.sh - makes libpawl.a: all parts linked into one object, in which only the names of EXPORTS stay global.
#
#     archive.sh EXPORTS OBJCOPY AR "CC WITH OPTIONS" OUT.a PART.a...
#
# It is one object so that the constructors by which modules join their lists are linked into every program.
set -eu
exports=$1 objcopy=$2 ar=$3 link=$4 out=$5
shift 5
object=${out%.a}.o
rm -f "$out"
# shellcheck disable=SC2086 # words
$link -r -nostdlib -o "$object" -Wl,--whole-archive "$@" -Wl,--no-whole-archive
"$objcopy" --keep-global-symbols="$exports" "$object"
"$ar" rcsD "$out" "$object"
rm -f "$object"
