/*
 * wallet.c - a purchase: the order and the money for it, in one transaction. Both are there or neither.
 *
 *     cc wallet.c $(pkg-config --cflags --libs pawl) -o wallet
 *     ./wallet postgresql://app@db/shop 0198c0de-0000-7000-8000-000000000017 alice 250
 *
 * The order's id is the key of the payment too. Run again with the same id the program changes nothing, so the transaction
 * may be run again even when the answer to its commit was lost (keyed). The shop is paid into a wallet of its own.
 */
#include <stdlib.h>

#include "common.h"

#define SHOP "shop"

typedef struct {
    const char *id, *buyer, *amount;
    PawlPosted  posted;
} Order;

/* A refused payment rolls the order back. */
static PawlStatus order_buy(PawlTx *tx, void *context)
{
    Order        *order    = context;
    const char   *values[] = {order->id, order->buyer};
    PawlOperation payment  = {.kind   = PAWL_TRANSFER,
                              .txn_id = order->id,
                              .from   = order->buyer,
                              .to     = SHOP,
                              .amount = strtoll(order->amount, NULL, 10)};
    PawlStatus    status;

    status =
        pawl_query(tx, "insert into bought (id, buyer) values ($1, $2) on conflict (id) do nothing", 2, values, NULL);
    return status == PAWL_OK ? pawl_tx_post(tx, &payment, &order->posted) : status;
}

int main(int argc, char **argv)
{
    PawlTransaction options = {.name = "buy", .timeout_ms = 2000, .keyed = true};
    PawlWallet      till    = {.owner = SHOP};
    Pawl           *pawl    = NULL;
    PawlError       error;
    PawlStatus      status;

    if (argc != 5) {
        fprintf(stderr, "usage: wallet URL ORDER-UUID BUYER AMOUNT\n");
        return 2;
    }

    Order order = {.id = argv[2], .buyer = argv[3], .amount = argv[4]};

    status = shop_open(argv[1], "bought (id uuid primary key, buyer text not null)", &pawl, &error);
    if (status == PAWL_OK)
        status = pawl_wallet_open(pawl, &till, 0, NULL, &error);
    if (status == PAWL_OK)
        status = pawl_transaction(pawl, &options, order_buy, &order, &error);
    if (status == PAWL_OK)
        printf("%s %s, %s has %lld left\n", order.id, order.posted.replayed ? "was bought before" : "bought",
               order.buyer, order.posted.available);
    return shop_close(pawl, status, &error);
}
