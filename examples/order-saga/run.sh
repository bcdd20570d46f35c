#!/bin/sh
# run.sh - one order from start to end. Needs a running `pawl serve`, and pawl and psql in PATH.
#
# The order is larger than 1000, so it waits for an approval, which this script gives. Exits with 1 unless the order is completed.
set -eu
cd "$(dirname "$0")"

psql -Xq -v ON_ERROR_STOP=1 -f shop.sql "${PAWL_DATABASE_URL:-$(pawl db url)}"
pawl wallet create ann >/dev/null
pawl wallet topup ann 5000 >/dev/null
pawl process define order.json

id=$(pawl process start order '{"customer": "ann", "items": [{"sku": "lamp", "count": 3}]}' --domain shop)
pawl process signal "$id" approval '{"approved": true}' --key approval-1
until pawl process show "$id" | grep -Eq '^status +(COMPLETED|COMPENSATED|FAILED|CANCELED|WAITING_FOR_TSQ)'; do
    sleep 0.2
done
pawl process show "$id"
pawl wallet balance ann
pawl process show "$id" | grep -Eq '^status +COMPLETED'
