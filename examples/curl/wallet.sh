#!/bin/sh
# wallet.sh - wallets over HTTP with curl alone: open two, top one up, transfer, read them, and repeat a request.
#
#     PAWL_TOKEN=$(pawl key create shop --scopes wallet,treasury) ./wallet.sh
#
# txn_id is the key of a transaction, chosen by the client. A client that does not know whether its request arrived sends it
# again: the answer has the same bytes, and the header Idempotency-Replayed says that nothing was posted a second time. Each run
# opens two wallets of its own.
set -eu

url=${PAWL_URL:-http://127.0.0.1:8080}

# post PATH JSON: the answer on standard output; a problem document, and failure, when it was refused
post() {
    curl --silent --show-error --fail-with-body --retry 5 --header "Authorization: Bearer $PAWL_TOKEN" \
        --header 'Content-Type: application/json' --data "$2" --write-out '\n' "$url$1"
}
get() {
    curl --silent --show-error --fail-with-body --header "Authorization: Bearer $PAWL_TOKEN" --write-out '\n' \
        "$url$1"
}
uuid() { cat /proc/sys/kernel/random/uuid; }

buyer=buyer-$(uuid)
seller=seller-$(uuid)
post /v1/wallets "{\"owner\": \"$buyer\"}"
post /v1/wallets "{\"owner\": \"$seller\"}"
post "/v1/wallets/$buyer/topup" "{\"txn_id\": \"$(uuid)\", \"amount\": 1000}"

key=$(uuid)
transfer="{\"txn_id\": \"$key\", \"from\": \"$buyer\", \"to\": \"$seller\", \"amount\": 300}"
post /v1/transfers "$transfer"
post /v1/transfers "$transfer" # a repeat: the same answer, and no second transfer

get "/v1/wallets/$buyer"
get "/v1/wallets/$seller/entries?limit=10"

# More than is available: 409 with the reason.
if post "/v1/wallets/$seller/spend" "{\"txn_id\": \"$(uuid)\", \"amount\": 301}"; then
    exit 1
fi
