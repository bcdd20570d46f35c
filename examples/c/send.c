/*
 * send.c - an order and the command to charge it, in one transaction: both are there or neither.
 *
 *     cc send.c $(pkg-config --cflags --libs pawl) -o send
 *     ./send postgresql://app@db/shop 0198c0de-0000-7000-8000-000000000017 250
 *
 * The order's id is the command's id too. Run again with the same id the program changes nothing, so the transaction may be
 * run again even when the answer to its commit was lost (keyed).
 */
#include <pawl/pawl.h>
#include <stdio.h>

typedef struct {
    const char *id, *amount;
    bool        is_new;
} Order;

static PawlStatus order_place(PawlTx *tx, void *context)
{
    Order      *order    = context;
    const char *values[] = {order->id, order->amount};
    PawlResult  result;
    PawlStatus  status;

    status = pawl_query(tx, "insert into placed (id, amount) values ($1, $2) on conflict (id) do nothing", 2, values,
                        &result);
    if (status != PAWL_OK)
        return status;
    order->is_new = result.changed == 1;
    return pawl_query(tx,
                      "select pawl.send('shop', 'charge', jsonb_build_object('order', $1::text, 'amount', $2::bigint),"
                      " p_command_id => $1::uuid)",
                      2, values, NULL);
}

static PawlStatus table_make(PawlTx *tx, void *context)
{
    (void)context;
    return pawl_query(
        tx, "create table if not exists placed (id uuid primary key, amount bigint not null check (amount > 0))", 0,
        NULL, NULL);
}

int main(int argc, char **argv)
{
    Pawl      *pawl;
    PawlError  error;
    PawlStatus status;

    if (argc != 4) {
        fprintf(stderr, "usage: send URL ORDER-UUID AMOUNT\n");
        return 2;
    }
    if (pawl_open(argv[1], &pawl, &error) != PAWL_OK) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }

    Order order = {.id = argv[2], .amount = argv[3]};

    status = pawl_transaction(pawl, &(PawlTransaction){.name = "table", .keyed = true}, table_make, NULL, &error);
    if (status == PAWL_OK)
        status = pawl_transaction(pawl, &(PawlTransaction){.name = "place", .timeout_ms = 2000, .keyed = true},
                                  order_place, &order, &error);
    pawl_close(pawl);
    if (status != PAWL_OK) {
        fprintf(stderr, "%s%s%s\n", error.sqlstate, error.sqlstate[0] ? ": " : "", error.text);
        return 1;
    }
    printf("%s %s\n", order.id, order.is_new ? "placed" : "was placed before");
    return 0;
}
