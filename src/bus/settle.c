/*
 * settle.c - outcomes as arrays, verdicts back into the items; see settle.h.
 */
#include "bus/settle.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "bus/command.h"
#include "bus/metric.h"
#include "bus/offer.h"
#include "bus/send.h"
#include "bus/settle_internal.h"
#include "pg/combiner.h"
#include "pg/combiner_split.h"
#include "pg/tx.h"
#include "sql.h"

#define ITEM_BYTES    1024
#define SETTLE_ARGS   10
#define BUSY_MS       1000 /* how long settle_each() tries again what another transaction holds */
#define BUSY_PAUSE_MS 50

#define X(outcome, name) [outcome] = name,
const char *const outcome_names[OUTCOME_COUNT + 1] = {OUTCOMES(X)};
#undef X

#define SETTLED_COLUMNS(X, T)  \
    X(T, I32, ord)             \
    X(T, BOOL, settled, again) \
    X(T, TEXT, status, wake)   \
    X(T, JSONB, started)
DB_ROW(Settled, SETTLED_COLUMNS);
DB_SHAPE(settled, Settled, SETTLED_COLUMNS);

/* ---- items as arrays; NULL where no item has one, so that the server has less to read ---- */

static DbArg results_arg(Arena *arena, SettleItem *const *items, int count)
{
    const char **texts = arena_array(arena, const char *, count);
    bool         any   = false;

    for (int i = 0; i < count; i++) {
        texts[i] = items[i]->result;
        any |= texts[i] != NULL;
    }
    return any ? db_jsonbs(arena, texts, count) : db_null();
}

static DbArg errors_arg(Arena *arena, SettleItem *const *items, int count)
{
    const char **texts = arena_array(arena, const char *, count);
    bool         any   = false;

    for (int i = 0; i < count; i++) {
        const char *error = items[i]->error;

        if (!error)
            continue;
        /* Any text: if the text of a failure could be refused, the failure could not be reported. */
        size_t size = text_cut(error, strlen(error), SETTLE_ERROR_MAX);
        char  *text = arena_bytes(arena, error, size);

        text_clean(text, size);
        texts[i] = text;
        any      = true;
    }
    return any ? db_texts(arena, texts, count) : db_null();
}

/* A null element follows the schedule; db_i64s() has no nulls, so the array is one of texts and cast. */
static DbArg delays_arg(Arena *arena, SettleItem *const *items, int count)
{
    const char **texts = arena_array(arena, const char *, count);
    bool         any   = false;

    for (int i = 0; i < count; i++)
        if ((items[i]->outcome == OUTCOME_RETRY || items[i]->outcome == OUTCOME_SNOOZE) &&
            items[i]->delay_ms != SETTLE_DELAY_DEFAULT) {
            texts[i] = arena_print(arena, "%lld", (long long)items[i]->delay_ms);
            any      = true;
        }
    return any ? db_texts(arena, texts, count) : db_null();
}

/* Not one of them: no such command, and there never was. */
static const char *status_of(const char *status)
{
    const char *constant = command_status_constant(status);

    return constant ? constant : "UNKNOWN";
}

/* ---- settling ---- */

/* offers NULL: none. */
static DbArgs settle_args(Arena *arena, SettleItem *const *items, int count, bool nowait, const ResumeOffers *offers,
                          DbArg *ret_list)
{
    int64_t     *ids      = arena_array(arena, int64_t, count);
    int64_t     *tokens   = arena_array(arena, int64_t, count);
    const char **outcomes = arena_array(arena, const char *, count);

    for (int i = 0; i < count; i++) {
        ids[i]      = items[i]->id;
        tokens[i]   = items[i]->token;
        outcomes[i] = outcome_names[items[i]->outcome];
    }
    ret_list[0] = db_i64s(arena, ids, count);
    ret_list[1] = db_i64s(arena, tokens, count);
    ret_list[2] = db_texts(arena, outcomes, count);
    ret_list[3] = results_arg(arena, items, count);
    ret_list[4] = errors_arg(arena, items, count);
    ret_list[5] = delays_arg(arena, items, count);
    ret_list[6] = db_texts_at(arena, items, count, offsetof(SettleItem, domain));
    ret_list[7] = db_uuids_at(arena, items, count, offsetof(SettleItem, command_id));
    ret_list[8] = db_bool(nowait);
    ret_list[9] = offers ? resume_offers_arg(arena, offers) : db_null();
    return (DbArgs){ret_list, SETTLE_ARGS};
}

static ErrorCode verdicts_take(const Settled *rows, int row_count, SettleItem **items, int count, Error *reterr)
{
    if (row_count != count)
        return fail(reterr, ERR_INTERNAL, "%d commands were settled and %d returned", count, row_count);
    for (int i = 0; i < count; i++) {
        items[i]->settled = rows[i].settled;
        items[i]->again   = rows[i].again;
        items[i]->busy    = rows[i].status && strcmp(rows[i].status, "BUSY") == 0;
        items[i]->status  = items[i]->busy ? NULL : status_of(rows[i].status);
        items[i]->wake    = rows[i].wake;
        items[i]->code    = OK;
        if (items[i]->busy)
            items[i]->code =
                fail(&items[i]->error_text, ERR_BUSY, "the lease is held by another transaction that has not ended");
    }
    return OK;
}

static size_t item_bytes(const void *context)
{
    const SettleItem *item = context;

    return ITEM_BYTES + (item->result ? strlen(item->result) : 0) + (item->error ? SETTLE_ERROR_MAX : 0);
}

size_t settle_weigh(SettleItem *const *items, int count)
{
    size_t bytes = 0;

    for (int i = 0; i < count; i++)
        bytes += item_bytes(items[i]) + SETTLE_CALL_WEIGHT_MAX / SETTLE_MAX;
    return bytes;
}

static ErrorCode check_size(const Arena *arena, SettleItem *const *items, int count, Error *reterr)
{
    size_t bytes = 0;

    if (count < 1 || count > SETTLE_MAX)
        return fail(reterr, ERR_LIMIT, "1 to %d commands can be settled in one call, got %d", SETTLE_MAX, count);
    for (int i = 0; i < count; i++)
        bytes += item_bytes(items[i]);
    if (!arena_has_space(arena, bytes * SETTLE_BYTES_FACTOR) && count == 1)
        return fail(reterr, ERR_LIMIT, "result of %zu bytes is too large",
                    items[0]->result ? strlen(items[0]->result) : 0);
    if (!arena_has_space(arena, bytes * SETTLE_BYTES_FACTOR))
        return fail(reterr, ERR_LIMIT, "%d outcomes of %zu bytes together are too large for one call", count, bytes);
    return OK;
}

ErrorCode settle_in(Tx *tx, SettleItem **items, int count, Error *reterr)
{
    DbArg list[SETTLE_ARGS];
    void *rows;
    int   row_count;

    TRY(check_size(tx->arena, items, count, reterr));
    TRY(db_many(tx, sql_bus_settle, settle_args(tx->arena, items, count, /* nowait= */ false, /* offers= */ NULL, list),
                &settled_shape, &rows, &row_count, reterr));
    return verdicts_take(rows, row_count, items, count, reterr);
}

/* What one outcome resumes starts on a free handler. Several outcomes can resume several commands, of which a claim finds the first one. */
static ErrorCode settle_call(Pool *pool, const TxOptions *options, SettleItem **items, int count, Settled **ret_rows,
                             int *ret_count, Error *reterr)
{
    DbArg        list[SETTLE_ARGS];
    ResumeOffers offers = {.count = 0};
    ErrorCode    code;

    if (count == 1)
        resume_offers_take(pool, /* domain= */ NULL, /* kept= */ 1, options->arena, &offers);
    code = db_call_many(pool, options, sql_bus_settle,
                        settle_args(options->arena, items, count, /* nowait= */ true, &offers, list), &settled_shape,
                        ret_rows, ret_count, reterr);
    resume_offers_end(&offers, code == OK && *ret_count > 0 ? (*ret_rows)->started : NULL);
    return code;
}

/* Keyed by the tokens: repeated after a lost response it changes nothing more. */
ErrorCode settle_many(Pool *pool, Deadline deadline, Arena *arena, SettleItem **items, int count, Error *reterr)
{
    TxOptions options = {
        .name = "settle", .deadline = deadline, .arena = arena, .keyed = true, .soon = true, .prepare = true};
    Settled *rows;
    int      row_count;

    TRY(check_size(arena, items, count, reterr));
    TRY(settle_call(pool, &options, items, count, &rows, &row_count, reterr));
    TRY(verdicts_take(rows, row_count, items, count, reterr));
    metric_add(&bus_metrics.settle_calls, 1);
    for (int i = 0; i < count; i++)
        items[i]->settled |= items[i]->again;
    return OK;
}

bool settle_is_canceled(const SettleItem *item)
{
    return item->status && strcmp(item->status, "CANCELED") == 0;
}

void settle_count(const SettleItem *item, DomainMetrics *domain)
{
    static Metric *const metrics[OUTCOME_COUNT] = {
        [OUTCOME_COMPLETE] = &bus_metrics.settled_completed, [OUTCOME_RETRY] = &bus_metrics.settled_retried,
        [OUTCOME_FAIL] = &bus_metrics.settled_failed,        [OUTCOME_REJECT] = &bus_metrics.settled_rejected,
        [OUTCOME_SNOOZE] = &bus_metrics.settled_snoozed,
    };
    Metric *const of_domain[OUTCOME_COUNT] = {
        [OUTCOME_COMPLETE] = &domain->completed,
        [OUTCOME_RETRY]    = &domain->retried,
        [OUTCOME_FAIL]     = &domain->failed,
        [OUTCOME_REJECT]   = &domain->rejected,
    };
    bool is_canceled = settle_is_canceled(item);
    /* The last attempt has no next one. */
    bool is_again    = item->outcome == OUTCOME_RETRY || item->outcome == OUTCOME_SNOOZE;
    bool is_given_up = is_again && item->status && strcmp(item->status, "IN_TSQ") == 0;

    metric_add(is_canceled     ? &bus_metrics.settled_canceled
               : item->settled ? metrics[item->outcome]
                               : &bus_metrics.settled_lost,
               1);
    if (!is_canceled && item->settled && (item->outcome != OUTCOME_SNOOZE || is_given_up))
        metric_add(of_domain[is_given_up ? OUTCOME_FAIL : item->outcome], 1);
}

/* ---- one bad item never fails the others ---- */

typedef struct {
    Pool       *pool;
    const Wake *wake;
} SettleCaller;

ErrorCode settle_together(Pool *pool, Deadline deadline, const Wake *wake, Arena *arena, SettleItem **items, int count,
                          Error *reterr)
{
    TRY(settle_many(pool, deadline, arena, items, count, reterr));
    wake_names(wake, items[0]->wake);
    for (int i = 0; i < count; i++)
        items[i]->wake = NULL; /* it is in the arena */
    return OK;
}

static ErrorCode caller_run(void *context, void **items, int count, Deadline deadline, Error *reterr)
{
    const SettleCaller       *caller = context;
    scoped(arena_free) Arena *arena  = arena_new(SETTLE_CALL_ARENA_BYTES);

    return settle_together(caller->pool, deadline, caller->wake, arena, (SettleItem **)items, count, reterr);
}

/* Refused here, because in a run it would cost its neighbours a second one. */
static ErrorCode check_result(const SettleItem *item, Error *reterr)
{
    size_t size = item->result ? strlen(item->result) : 0;

    if (size > SETTLE_RESULT_MAX)
        return fail(reterr, ERR_LIMIT, "result has %zu bytes: at most %zu are kept", size, SETTLE_RESULT_MAX);
    if (item->result && send_exponents_sum(item->result) > SEND_EXPANDED_MAX - size)
        return fail(reterr, ERR_LIMIT, "result must have at most %zu bytes when its numbers are written out, got more",
                    SEND_EXPANDED_MAX);
    return OK;
}

static void settle_done(void *context, const Error *error)
{
    SettleItem *item = context;

    if (error->code == OK)
        return; /* its verdict has been taken */
    item->code       = error->code;
    item->error_text = *error;
    item->busy       = false;
}

int settle_items_busy(SettleItem **items, int count)
{
    int busy = 0;

    for (int i = 0; i < count; i++)
        if (items[i]->code == ERR_BUSY && items[i]->busy) {
            SettleItem *item = items[i];

            items[i]      = items[busy];
            items[busy++] = item;
        }
    return busy;
}

int settle_items_good(SettleItem *const *items, int count, SettleItem **ret_good)
{
    int good = 0;

    for (int i = 0; i < count; i++) {
        items[i]->busy = false;
        items[i]->code = check_result(items[i], &items[i]->error_text);
        if (items[i]->code == OK)
            ret_good[good++] = items[i];
    }
    return good;
}

void settle_apart(Pool *pool, Deadline deadline, const Wake *wake, SettleItem **items, int count)
{
    SettleCaller caller = {.pool = pool, .wake = wake};

    if (count > 0)
        combiner_split(caller_run, &caller, (void **)items, count, deadline, settle_done);
}

void settle_each(Pool *pool, Deadline deadline, const Wake *wake, SettleItem **items, int count)
{
    scoped(arena_free) Arena *arena = arena_new((size_t)count * sizeof(SettleItem *) + ARENA_BYTES_DEFAULT);
    SettleItem              **list  = arena_array(arena, SettleItem *, count);
    Deadline                  until = deadline_sooner(deadline, deadline_in_ms(BUSY_MS));

    count = settle_items_good(items, count, list);
    settle_apart(pool, deadline, wake, list, count);
    while ((count = settle_items_busy(list, count)) > 0 && !deadline_passed(until)) {
        clock_sleep_until(deadline_sooner(until, deadline_in_ms(BUSY_PAUSE_MS)));
        settle_apart(pool, deadline, wake, list, count);
    }
}
