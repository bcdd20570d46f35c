/*
 * transaction.c - one transaction with libpawl: an order is booked exactly once, however often the program is run.
 *
 *     cc transaction.c $(pkg-config --cflags --libs pawl) -o transaction
 *     ./transaction postgresql://app@db/shop order-17 250
 *
 * The key is inserted first, in the same transaction as the work. A second run with the same key finds it and changes
 * nothing; so the transaction may be run again even when the answer to its commit was lost (keyed).
 */
#include "common.h"

typedef struct {
    const char *key, *amount;
    bool        is_new;
    char        total[32];
} Order;

static PawlStatus order_place(PawlTx *tx, void *context)
{
    Order      *order = context;
    const char *row[] = {order->key, order->amount};
    PawlResult  result;
    PawlStatus  status;

    status = pawl_query(tx, "insert into orders (key, amount) values ($1, $2) on conflict (key) do nothing", 2, row,
                        &result);
    if (status != PAWL_OK)
        return status;
    order->is_new = result.changed == 1;
    status        = pawl_query(tx, "select sum(amount) from orders", 0, NULL, &result);
    if (status == PAWL_OK)
        snprintf(order->total, sizeof order->total, "%s", result.values[0]);
    return status;
}

int main(int argc, char **argv)
{
    PawlTransaction options = {.name = "order", .timeout_ms = 2000, .keyed = true};
    Pawl           *pawl    = NULL;
    PawlError       error;
    PawlStatus      status;

    if (argc != 4) {
        fprintf(stderr, "usage: transaction URL KEY AMOUNT\n");
        return 2;
    }

    Order order = {.key = argv[2], .amount = argv[3]};

    status =
        shop_open(argv[1], "orders (key text primary key, amount bigint not null check (amount > 0))", &pawl, &error);
    if (status == PAWL_OK)
        status = pawl_transaction(pawl, &options, order_place, &order, &error);
    if (status == PAWL_OK)
        printf("%s %s, total %s\n", order.key, order.is_new ? "booked" : "was booked before", order.total);
    return shop_close(pawl, status, &error);
}
