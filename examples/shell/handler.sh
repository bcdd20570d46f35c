#!/bin/sh
# handler.sh - a handler for `pawl work` in plain shell: charges an order by writing a receipt.
#
#     pawl send shop charge '{"order": 7, "amount": 250}'
#     RECEIPTS=/var/lib/shop pawl work shop --exec ./handler.sh
#
# It may be run a second time for the same command (its worker died before it could say that all was done), so the receipt
# is named after the command: the second run finds it and changes nothing.
set -eu

receipts=${RECEIPTS:-.}
payload=$(cat)
amount=$(printf '%s' "$payload" | sed -n 's/.*"amount": *\([0-9][0-9]*\).*/\1/p')

if [ -z "$amount" ]; then
    echo "payload has no amount" >&2
    exit 70 # permanent: another attempt would read the same payload
fi
if [ "$amount" -gt 1000 ]; then
    echo "amount $amount is above the limit of 1000" >&2
    exit 65 # a business refusal: the answer is no
fi
if [ ! -d "$receipts" ]; then
    echo "folder of receipts is not there" >&2
    exit 75 # transient: tried again later
fi

# Written beside and renamed, so that a receipt is either there as a whole or not at all.
receipt="$receipts/$PAWL_COMMAND_ID"
if [ ! -e "$receipt" ]; then
    printf '%s\n' "$amount" >"$receipt.$$"
    mv "$receipt.$$" "$receipt"
fi
printf '{"charged": %s, "attempt": %s}\n' "$amount" "$PAWL_ATTEMPT"
