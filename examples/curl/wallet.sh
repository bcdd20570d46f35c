#!/bin/sh
# wallet.sh - wallets over HTTP with nothing but curl: open two, put money in, move it, look, and repeat a request.
#
#     PAWL_TOKEN=$(pawl key create shop --scopes wallet,treasury) ./wallet.sh
#
# txn_id is the key of a transaction, chosen by the client. Whoever is not sure whether a request arrived sends it again:
# the answer is the same to the byte, and Idempotency-Replayed says that nothing was posted a second time.
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

post /v1/wallets '{"owner": "ann"}'
post /v1/wallets '{"owner": "bob"}'
post /v1/wallets/ann/topup "{\"txn_id\": \"$(uuid)\", \"amount\": 1000}"

key=$(uuid)
post /v1/transfers "{\"txn_id\": \"$key\", \"from\": \"ann\", \"to\": \"bob\", \"amount\": 300}"
post /v1/transfers "{\"txn_id\": \"$key\", \"from\": \"ann\", \"to\": \"bob\", \"amount\": 300}" # told again

get /v1/wallets/ann
get '/v1/wallets/bob/entries?limit=10'

# More than there is: 409, and the reason.
if post /v1/wallets/bob/spend "{\"txn_id\": \"$(uuid)\", \"amount\": 301}"; then
    exit 1
fi
