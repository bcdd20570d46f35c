/*
 * lease.c - see lease.h.
 */
#include "bus/lease.h"

#include <sodium.h>
#include <string.h>

#include "pg/query.h"
#include "pg/tx.h"
#include "sql.h"

#define TOKEN_MAX ((UINT64_C(1) << 53) - 1)

int64_t lease_token_new(void)
{
    uint64_t number;

    randombytes_buf(&number, sizeof number);
    return (int64_t)(1 + number % TOKEN_MAX);
}

static LeaseVerdict verdict_read(const char *word)
{
    static const char *const words[] = {[LEASE_EXTENDED] = "EXTENDED",
                                        [LEASE_CANCELED] = "CANCELED",
                                        [LEASE_LOST]     = "LOST",
                                        [LEASE_BUSY]     = "BUSY",
                                        [LEASE_RELEASED] = "RELEASED"};

    for (size_t i = 0; i < COUNT(words); i++)
        if (word && strcmp(words[i], word) == 0)
            return (LeaseVerdict)i;
    return LEASE_LOST;
}

/* A call that returns a verdict for each of `count` leases. */
static ErrorCode verdicts_call(Pool *pool, const TxOptions *options, const char *sql, DbArgs args, int count,
                               LeaseVerdict *ret_verdicts, Error *reterr)
{
    const char *const *words;
    int                row_count;

    TRY(db_call_many(pool, options, sql, args, &db_text_shape, &words, &row_count, reterr));
    if (row_count != count)
        return fail(reterr, ERR_INTERNAL, "%s: %d leases have %d verdicts", options->name, count, row_count);
    for (int i = 0; i < count && ret_verdicts; i++)
        ret_verdicts[i] = verdict_read(words[i]);
    return OK;
}

ErrorCode lease_extend(Pool *pool, Deadline deadline, Arena *arena, const int64_t *ids, const int64_t *tokens,
                       int count, int lease_ms, LeaseVerdict *ret_verdicts, Error *reterr)
{
    TxOptions options = {
        .name = "extend", .deadline = deadline, .arena = arena, .keyed = true, .urgent = true, .prepare = true};

    return verdicts_call(pool, &options, sql_bus_extend,
                         DB_ARGS(db_i64s(arena, ids, count), db_i64s(arena, tokens, count), db_i32(lease_ms)), count,
                         ret_verdicts, reterr);
}

ErrorCode lease_release(Pool *pool, Deadline deadline, Arena *arena, const ClaimedCommand *list, int count,
                        LeaseVerdict *ret_verdicts, Error *reterr)
{
    TxOptions options = {.name = "release", .deadline = deadline, .arena = arena, .keyed = true};
    int64_t  *ids     = arena_array(arena, int64_t, count);
    int64_t  *tokens  = arena_array(arena, int64_t, count);

    for (int i = 0; i < count; i++) {
        ids[i]    = list[i].id;
        tokens[i] = list[i].token;
    }
    return verdicts_call(pool, &options, sql_bus_release,
                         DB_ARGS(db_i64s(arena, ids, count), db_i64s(arena, tokens, count)), count, ret_verdicts,
                         reterr);
}

ErrorCode lease_postpone(Pool *pool, Deadline deadline, Arena *arena, const ClaimedCommand *command, int64_t delay_ms,
                         const char *reason, bool *ret_settled, Error *reterr)
{
    TxOptions options = {.name = "postpone", .deadline = deadline, .arena = arena, .keyed = true};
    int64_t   postponed;

    TRY(db_call(pool, &options, sql_bus_postpone,
                DB_ARGS(db_i64s(arena, &command->id, 1), db_i64s(arena, &command->token, 1),
                        db_i64s(arena, &delay_ms, 1), db_text(reason)),
                &db_i64_shape, &postponed, reterr));
    *ret_settled = postponed > 0;
    return OK;
}
