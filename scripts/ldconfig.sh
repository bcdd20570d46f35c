#!/bin/sh
# ldconfig.sh - run by meson install: lets the dynamic linker find the new libpawl. An install into a staging folder (DESTDIR) leaves the
# machine alone, and without root's rights the linker's cache cannot be written.
if [ -z "${DESTDIR:-}" ] && [ "$(id -u)" -eq 0 ] && [ -x /sbin/ldconfig ]; then
    exec /sbin/ldconfig
fi
