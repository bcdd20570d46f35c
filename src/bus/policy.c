/*
 * policy.c - see policy.h; sql/bus/policy.sql decides.
 */
#include "bus/policy.h"

#include <stdlib.h>

#include "pg/tx.h"
#include "sql.h"

const char *const order_key_rules[] = {"hold", "release", NULL};

DB_SHAPE(policy, RetryPolicy, RETRY_POLICY_COLUMNS);

ErrorCode retry_policy_list(Pool *pool, Deadline deadline, Arena *arena, const char *domain, RetryPolicy **ret_list,
                            int *ret_count, Error *reterr)
{
    TxOptions options = {.name = "retry_policy_list", .deadline = deadline, .arena = arena, .read_only = true};
    void     *rows;

    TRY(db_call_many(pool, &options, sql_bus_retry_policy_list, DB_ARGS(db_text(domain)), &policy_shape, &rows,
                     ret_count, reterr));
    *ret_list = rows;
    return OK;
}

typedef struct {
    const char    *domain, *type, *order_key;
    const int64_t *delays_ms;
    int            count;
} Setting;

static ErrorCode set_body(Tx *tx, void *context, Error *reterr)
{
    const Setting *given = context;

    return db_run(tx, sql_bus_retry_policy_set,
                  DB_ARGS(db_text(given->domain), db_text(given->type),
                          given->count ? db_i64s(tx->arena, given->delays_ms, given->count) : db_null(),
                          db_text(given->order_key)),
                  NULL, reterr);
}

ErrorCode retry_policy_set(Pool *pool, Deadline deadline, int lock_ms, const char *domain, const char *type,
                           const int64_t *delays_ms, int count, const char *order_key, Error *reterr)
{
    scoped(arena_free) Arena *arena   = arena_new(ARENA_BYTES_DEFAULT);
    TxOptions                 options = {
                        .name = "retry_policy_set", .deadline = deadline, .lock_ms = lock_ms, .arena = arena, .keyed = true};
    Setting given = {domain, type, order_key, delays_ms, count};

    return tx_run(pool, &options, set_body, &given, reterr);
}

void retry_policy_write(Writer *writer, const RetryPolicy *policy)
{
    const char *next = policy->delays_ms;

    writer_object(writer, NULL);
    writer_text(writer, "type", policy->type);
    writer_array(writer, "delays_s");
    while (*next) {
        char *end;

        writer_real(writer, NULL, (double)strtoll(next, &end, 10) / 1000);
        next = *end ? end + 1 : end;
    }
    writer_end(writer);
    writer_bool(writer, "is_default", policy->is_default);
    writer_text(writer, "order_key", policy->order_key);
    writer_end(writer);
}
