/*
 * fixture.c - see fixture.h.
 */
#include "test/unit/bus/fixture.h"

#include <stdlib.h>

Deadline soon(void)
{
    return deadline_in_ms(60000);
}

Bus *bus_new(int pool_size)
{
    Bus  *bus   = calloc(1, sizeof *bus);
    Error error = {0};

    assert_non_null(bus);
    bus->db    = database_new();
    bus->arena = arena_new((size_t)256 << 20);
    assert_ok(pool_new(&(PoolOptions){.conninfo = database_url(bus->db), .size_max = pool_size}, &bus->pool, &error));
    return bus;
}

void bus_free(Bus *bus)
{
    pool_free(bus->pool);
    database_free(bus->db);
    arena_free(bus->arena);
    free(bus);
}

SendItem bus_item(const char *domain, const char *type, const char *payload)
{
    return (SendItem){
        .domain = domain, .type = type, .payload = payload, .priority = SEND_DEFAULT, .max_attempts = SEND_DEFAULT};
}

void bus_send(Bus *bus, const char *domain, int count)
{
    SendItem  *items = arena_array(bus->arena, SendItem, count);
    SendItem **list  = arena_array(bus->arena, SendItem *, count);
    Error      error = {0};

    for (int i = 0; i < count; i++) {
        items[i] = bus_item(domain, "t", arena_print(bus->arena, "{\"n\": %d}", i + 1));
        list[i]  = &items[i];
    }
    assert_ok(send_many(bus->pool, soon(), bus->arena, list, count, &error));
    for (int i = 0; i < count; i++)
        assert_true(items[i].code == OK && items[i].is_new);
}

int bus_claim(Bus *bus, Claimer *claimer, int limit, int lease_ms, ClaimedCommand **ret_list)
{
    Error error = {0};
    int   count = 0;

    assert_ok(claimer_claim(claimer, soon(), bus->arena, &(ClaimTerms){.limit = limit, .lease_ms = lease_ms}, ret_list,
                            &count, &error));
    return count;
}

SettleItem bus_settle(Bus *bus, const ClaimedCommand *command, Outcome outcome, const char *result,
                      const char *error_text)
{
    SettleItem  item  = {.id       = command->id,
                         .token    = command->token,
                         .outcome  = outcome,
                         .result   = result,
                         .error    = error_text,
                         .delay_ms = SETTLE_DELAY_DEFAULT};
    SettleItem *list  = &item;
    Error       error = {0};

    assert_ok(settle_many(bus->pool, soon(), bus->arena, &list, 1, &error));
    return item;
}

int64_t bus_count(Bus *bus, const char *table)
{
    return database_get_i64(bus->db, arena_print(bus->arena, "select count(*) from pawl.%s", table));
}
