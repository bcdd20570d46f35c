#!/bin/sh
# wallet.sh - an order is paid in two steps, from the command line: set the money aside, take it when the parcel leaves.
#
#     PAWL_DATABASE_URL=postgresql:///shop ./wallet.sh ann 250 3d6f0a52-6a0e-4c3c-9d53-8a3f2c5b7e10
#
# The order's own id is the key of the hold, so the script may be run again at any time, after a crash or a lost connection
# as well: what was posted is reported again, and nothing is taken twice. The key of the second step is made from the first.
set -eu

if [ $# -ne 3 ]; then
    echo "usage: wallet.sh CUSTOMER AMOUNT ORDER-UUID" >&2
    exit 2
fi

customer=$1
amount=$2
order=$3
capture=$(printf '%s' "capture $order" | md5sum | sed 's/^\(.\{8\}\)\(.\{4\}\)\(.\{4\}\)\(.\{4\}\)\(.\{12\}\).*/\1-\2-\3-\4-\5/')

pawl wallet create shop >/dev/null # opened twice it is one wallet

if ! pawl wallet hold "$customer" "$amount" --txn-id "$order" --expires-in 7d >/dev/null; then
    echo "order $order is not paid" >&2
    exit 1
fi
# ... here the parcel is packed; if it never is, the hold gives the money back after a week ...
pawl wallet capture "$order" --to shop --txn-id "$capture" >/dev/null
pawl wallet balance shop --json
