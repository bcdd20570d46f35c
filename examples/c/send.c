/*
 * send.c - an order and the command to charge it, in one transaction: both are there or neither.
 *
 *     cc send.c $(pkg-config --cflags --libs pawl) -o send
 *     ./send postgresql://app@db/shop 0198c0de-0000-7000-8000-000000000017 250
 *
 * The order's id is the command's id too. Run again with the same id the program changes nothing, so the transaction may be
 * run again even when the answer to its commit was lost (keyed). worker.c handles the command.
 */
#include <stdlib.h>

#include "common.h"

typedef struct {
    const char *id, *amount;
    PawlSent    sent;
} Order;

static PawlStatus order_place(PawlTx *tx, void *context)
{
    Order      *order    = context;
    const char *values[] = {order->id, order->amount};
    char        payload[64];
    PawlCommand charge = {.domain = "shop", .type = "charge", .payload = payload, .command_id = order->id};
    PawlStatus  status;

    status =
        pawl_query(tx, "insert into placed (id, amount) values ($1, $2) on conflict (id) do nothing", 2, values, NULL);
    if (status != PAWL_OK)
        return status;
    snprintf(payload, sizeof payload, "{\"amount\": %lld}", strtoll(order->amount, NULL, 10));
    return pawl_tx_send(tx, &charge, &order->sent);
}

int main(int argc, char **argv)
{
    PawlTransaction options = {.name = "place", .timeout_ms = 2000, .keyed = true};
    Pawl           *pawl    = NULL;
    PawlError       error;
    PawlStatus      status;

    if (argc != 4) {
        fprintf(stderr, "usage: send URL ORDER-UUID AMOUNT\n");
        return 2;
    }

    Order order = {.id = argv[2], .amount = argv[3]};

    status =
        shop_open(argv[1], "placed (id uuid primary key, amount bigint not null check (amount > 0))", &pawl, &error);
    if (status == PAWL_OK)
        status = pawl_transaction(pawl, &options, order_place, &order, &error);
    if (status == PAWL_OK)
        printf("%s %s, %s\n", order.id, order.sent.is_new ? "placed" : "was placed before", order.sent.status);
    return shop_close(pawl, status, &error);
}
