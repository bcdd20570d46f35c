/*
 * release.c - see release.h.
 */
#include "bus/release.h"

#include "pg/tx.h"
#include "sql.h"

ErrorCode lease_release(Pool *pool, Deadline deadline, Arena *arena, const ClaimedCommand *list, int count,
                        Error *reterr)
{
    TxOptions options = {.name = "release", .deadline = deadline, .arena = arena, .keyed = true};
    int64_t  *ids     = arena_array(arena, int64_t, count);
    int64_t  *tokens  = arena_array(arena, int64_t, count);
    int64_t   released;

    for (int i = 0; i < count; i++) {
        ids[i]    = list[i].id;
        tokens[i] = list[i].token;
    }
    return db_call(pool, &options, sql_bus_release, DB_ARGS(db_i64s(arena, ids, count), db_i64s(arena, tokens, count)),
                   &db_i64_shape, &released, reterr);
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
