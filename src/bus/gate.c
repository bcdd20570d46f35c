/*
 * gate.c - see gate.h.
 */
#include "bus/gate.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "bus/answers.h"
#include "bus/command.h"
#include "bus/send.h"
#include "pg/tx.h"
#include "sql.h"

DB_SHAPE(domain_pause, DomainPause, DOMAIN_PAUSE_COLUMNS);
DB_SHAPE(domain_limit, DomainLimit, DOMAIN_LIMIT_COLUMNS);

#define CHANGED_COLUMNS(X, T) \
    X(T, I64, changed)        \
    X(T, TEXT, wake)
DB_ROW(Changed, CHANGED_COLUMNS);
DB_SHAPE(changed, Changed, CHANGED_COLUMNS);

/* A decision that changes something and says which domains to notify. */
static ErrorCode gate_change(Pool *pool, Deadline deadline, Arena *arena, const GateDecision *decision,
                             const char *name, const char *sql, DbArgs args, const char **ret_wake, Error *reterr)
{
    TxOptions options = {
        .name = name, .deadline = deadline, .lock_ms = decision->lock_ms, .arena = arena, .keyed = true};
    Changed changed = {0};

    TRY(db_call(pool, &options, sql, args, &changed_shape, &changed, reterr));
    *ret_wake = changed.wake;
    return OK;
}

static DbArg types_arg(Arena *arena, const char *const *types, int count)
{
    return types ? db_texts(arena, types, count) : db_null();
}

ErrorCode domain_pause(Pool *pool, Deadline deadline, Arena *arena, const GateDecision *decision,
                       const char *const *types, int count, const char **ret_wake, Error *reterr)
{
    return gate_change(pool, deadline, arena, decision, "domain_pause", sql_bus_domain_pause,
                       DB_ARGS(db_text(decision->domain), types_arg(arena, types, count), db_text(decision->by),
                               db_text(decision->reason)),
                       ret_wake, reterr);
}

ErrorCode domain_resume(Pool *pool, Deadline deadline, Arena *arena, const GateDecision *decision,
                        const char *const *types, int count, const char **ret_wake, Error *reterr)
{
    return gate_change(pool, deadline, arena, decision, "domain_resume", sql_bus_domain_resume,
                       DB_ARGS(db_text(decision->domain), types_arg(arena, types, count), db_text(decision->by),
                               db_text(decision->reason)),
                       ret_wake, reterr);
}

ErrorCode domain_pauses(Pool *pool, Deadline deadline, Arena *arena, const char *domain, DomainPause **ret_list,
                        int *ret_count, Error *reterr)
{
    TxOptions options = {.name = "domain_pauses", .deadline = deadline, .arena = arena, .read_only = true};

    return db_call_many(pool, &options, sql_bus_domain_pauses, DB_ARGS(db_text(domain)), &domain_pause_shape, ret_list,
                        ret_count, reterr);
}

static DbArg set_or_null(int64_t value)
{
    return value > 0 ? db_i64(value) : db_null();
}

ErrorCode domain_limit_set(Pool *pool, Deadline deadline, Arena *arena, const GateDecision *decision,
                           const DomainLimit *limit, const char **ret_wake, Error *reterr)
{
    return gate_change(pool, deadline, arena, decision, "domain_limit_set", sql_bus_domain_limit_set,
                       DB_ARGS(db_text(decision->domain), db_text(limit->type), set_or_null(limit->running),
                               set_or_null(limit->rate), set_or_null(limit->period_s), set_or_null(limit->burst),
                               db_bool(limit->per_key), db_text(decision->by), db_text(decision->reason)),
                       ret_wake, reterr);
}

ErrorCode domain_limit_remove(Pool *pool, Deadline deadline, Arena *arena, const GateDecision *decision,
                              const char *type, const char **ret_wake, Error *reterr)
{
    return gate_change(pool, deadline, arena, decision, "domain_limit_remove", sql_bus_domain_limit_remove,
                       DB_ARGS(db_text(decision->domain), db_text(type), db_text(decision->by),
                               db_text(decision->reason)),
                       ret_wake, reterr);
}

ErrorCode domain_limits(Pool *pool, Deadline deadline, Arena *arena, const char *domain, DomainLimit **ret_list,
                        int *ret_count, Error *reterr)
{
    TxOptions options = {.name = "domain_limits", .deadline = deadline, .arena = arena, .read_only = true};

    return db_call_many(pool, &options, sql_bus_domain_limits, DB_ARGS(db_text(domain)), &domain_limit_shape, ret_list,
                        ret_count, reterr);
}

/* ---- rates ---- */

const char *limit_rate_print(const DomainLimit *limit, Arena *arena)
{
    Text text;

    if (!limit->rate)
        return NULL;
    text_init(&text, arena, TEXT_MAX_LINE);
    text_print(&text, "%" PRId64 "/%s", limit->rate, limit->period_s == 60 ? "m" : "s");
    return text_string(&text);
}

ErrorCode limit_rate_read(const char *text, DomainLimit *limit, Error *reterr)
{
    char *end;

    limit->rate     = text[0] >= '0' && text[0] <= '9' ? strtoll(text, &end, 10) : 0;
    limit->period_s = limit->rate < 1 || limit->rate > LIMIT_RATE_MAX ? 0
                      : strcmp(end, "/s") == 0                        ? 1
                      : strcmp(end, "/m") == 0                        ? 60
                                                                      : 0;
    if (!limit->period_s)
        return fail(reterr, ERR_INVALID,
                    "must be a number from 1 to %d per second or minute, such as 100/s or 600/m, got \"%.60s\"",
                    LIMIT_RATE_MAX, text);
    return OK;
}

/* ---- requests ---- */

static const Field pause_fields[] = {
    {"types", FIELD_TEXTS, offsetof(PauseRequest, types), .min = 1, .max = PAUSE_TYPES_MAX, .length_max = SEND_TYPE_MAX,
     .help = "only these types of commands; the whole domain when absent"},
    DECISION_FIELDS(PauseRequest),
};
const FieldTable pause_table = {"pause", pause_fields, COUNT(pause_fields), sizeof(PauseRequest)};

static const Field limit_fields[] = {
    {"type", FIELD_TEXT, offsetof(LimitRequest, type), .length_max = SEND_TYPE_MAX,
     .help = "of this type of commands; of the whole domain when absent"},
    {"running", FIELD_I64, offsetof(LimitRequest, running), .min = 1, .max = LIMIT_RUNNING_MAX,
     .help = "at most so many run at the same time"},
    {"rate_per_s", FIELD_REAL, offsetof(LimitRequest, rate_per_s), .is_set = offsetof(LimitRequest, has_rate_per_s),
     .help = "at most so many begin in a second; a fraction must be a whole number per minute"},
    {"rate_per_m", FIELD_I64, offsetof(LimitRequest, rate_per_m), .min = 1, .max = LIMIT_RATE_MAX,
     .help = "instead: at most so many begin in a minute"},
    {"burst", FIELD_I64, offsetof(LimitRequest, burst), .min = 1, .max = LIMIT_RATE_MAX,
     .help = "so many may begin at once after a rest; when absent, no second (minute) has more than the rate"},
    {"per_key", FIELD_BOOL, offsetof(LimitRequest, per_key),
     .help = "for each key by itself, the order key up to its first slash; keys take turns"},
    DECISION_FIELDS(LimitRequest),
};
const FieldTable limit_table = {"limit", limit_fields, COUNT(limit_fields), sizeof(LimitRequest)};

static ErrorCode rate_take(double per_s, DomainLimit *limit, Error *reterr)
{
    bool    is_known  = per_s > 0 && per_s <= LIMIT_RATE_MAX; /* not when it is no number */
    int64_t rate      = is_known ? (int64_t)per_s : 0;
    int64_t minute    = is_known ? (int64_t)(per_s * 60 + 0.5) : 0;
    double  remainder = per_s * 60 - (double)minute;

    if (is_known && per_s - (double)rate == 0) {
        limit->rate     = rate;
        limit->period_s = 1;
        return OK;
    }
    if (minute < 1 || minute > LIMIT_RATE_MAX || remainder > 1e-6 || remainder < -1e-6)
        return fail(reterr, ERR_INVALID,
                    "rate_per_s must be a whole number from 1 to %d, or a whole number per minute, got %g",
                    LIMIT_RATE_MAX, per_s);
    limit->rate     = minute;
    limit->period_s = 60;
    return OK;
}

ErrorCode limit_request_take(const LimitRequest *request, DomainLimit *ret_limit, Error *reterr)
{
    *ret_limit = (DomainLimit){.type     = request->type,
                               .per_key  = request->per_key,
                               .running  = request->running,
                               .rate     = request->rate_per_m,
                               .period_s = 60,
                               .burst    = request->burst};
    if (request->has_rate_per_s && request->rate_per_m)
        return fail(reterr, ERR_INVALID, "rate_per_s and rate_per_m exclude each other");
    if (request->has_rate_per_s)
        return rate_take(request->rate_per_s, ret_limit, reterr);
    return OK;
}

/* ---- answers ---- */

void domain_pause_write(Writer *writer, const void *row)
{
    writer_row(writer, &answer_pause, row);
}

static void number_write(Writer *writer, const char *name, int64_t value, bool is_set)
{
    if (is_set)
        writer_i64(writer, name, value);
    else
        writer_null(writer, name);
}

void domain_limit_write(Writer *writer, const void *row)
{
    const DomainLimit *limit = row;

    writer_object(writer, NULL);
    writer_text(writer, "type", limit->type);
    writer_bool(writer, "per_key", limit->per_key);
    number_write(writer, "running", limit->running, limit->running > 0);
    if (limit->rate > 0)
        writer_real(writer, "rate_per_s", (double)limit->rate / (double)limit->period_s);
    else
        writer_null(writer, "rate_per_s");
    number_write(writer, "period_s", limit->period_s, limit->rate > 0);
    number_write(writer, "burst", limit->burst, limit->burst > 0);
    number_write(writer, "running_now", limit->running_now, limit->running_now >= 0);
    writer_end(writer);
}
