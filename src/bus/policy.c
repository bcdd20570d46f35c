/*
 * policy.c - see policy.h; sql/bus/policy.sql decides.
 */
#include "bus/policy.h"

#include <stdlib.h>
#include <string.h>

#include "base/value.h"
#include "bus/send.h"
#include "pg/tx.h"
#include "sql.h"

const char *const order_key_rules[] = {"hold", "release", NULL};

DB_SHAPE(policy, RetryPolicy, RETRY_POLICY_COLUMNS);

ErrorCode retry_policy_list(Pool *pool, Deadline deadline, Arena *arena, const char *domain, RetryPolicy **ret_list,
                            int *ret_count, Error *reterr)
{
    TxOptions options = {.name = "retry_policy_list", .deadline = deadline, .arena = arena, .read_only = true};

    return db_call_many(pool, &options, sql_bus_retry_policy_list, DB_ARGS(db_text(domain)), &policy_shape, ret_list,
                        ret_count, reterr);
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

void retry_policy_write(Writer *writer, const void *row)
{
    const RetryPolicy *policy = row;
    const char        *next   = policy->delays_ms;

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

/* ---- a policy as JSON ---- */

static const Field policy_fields[] = {
    {"type", FIELD_TEXT, offsetof(PolicyRequest, type), .length_max = SEND_TYPE_MAX,
     .help = "the domain's own when absent"},
    {"delays_s", FIELD_JSON, offsetof(PolicyRequest, delays_s),
     .help = "seconds before the second, third, ... attempt; the last one serves all further attempts"},
    {"order_key", FIELD_TEXT, offsetof(PolicyRequest, order_key), .length_max = 20, .words = order_key_rules,
     .help = "what a command in the troubleshooting queue does with its order key"},
};
const FieldTable policy_table = {"retry policy", policy_fields, COUNT(policy_fields), sizeof(PolicyRequest)};

static ErrorCode delays_refuse(Error *reterr)
{
    return fail(reterr, ERR_INVALID, "delays_s must be an array of 1 to %d numbers from 0 to %d", POLICY_DELAYS_MAX,
                POLICY_MS_MAX / 1000);
}

/* `json` is one valid value. */
static ErrorCode delays_read(const char *json, int64_t *ret_list, int *ret_count, Error *reterr)
{
    Value list  = value_trim(json, strlen(json)), item;
    int   count = 0;

    for (const char *at = NULL; value_item_next(list, &at, &item);) {
        double value = value_kind(item) == VALUE_NUMBER ? strtod(item.bytes, NULL) : -1;

        if (count == POLICY_DELAYS_MAX || !(value >= 0 && value <= POLICY_MS_MAX / 1000))
            return delays_refuse(reterr);
        ret_list[count++] = (int64_t)(value * 1000 + 0.5);
    }
    *ret_count = count;
    return count > 0 ? OK : delays_refuse(reterr);
}

ErrorCode policy_request_delays(const PolicyRequest *request, int64_t *ret_delays_ms, int *ret_count, Error *reterr)
{
    if (!request->delays_s && !request->order_key)
        return fail(reterr, ERR_INVALID, "delays_s or order_key is required");
    if (request->delays_s)
        return delays_read(request->delays_s, ret_delays_ms, ret_count, reterr);
    *ret_count = 0;
    return OK;
}

void policies_write(Writer *writer, const char *domain, const RetryPolicy *list, int count)
{
    writer_object(writer, NULL);
    writer_text(writer, "domain", domain);
    writer_array(writer, "items");
    for (int i = 0; i < count; i++)
        retry_policy_write(writer, &list[i]);
    writer_end(writer);
    writer_end(writer);
}
