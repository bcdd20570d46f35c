/*
 * move.c - processes to a newer version of their definition; see process.h. sql/process/move.sql decides.
 */
#include <string.h>

#include "pg/tx.h"
#include "process/process.h"
#include "sql.h"

DB_SHAPE(moved, ProcessMoved, PROCESS_MOVED_COLUMNS);

ErrorCode process_move(Pool *pool, Deadline deadline, int lock_ms, Arena *arena, CommandNames names, int version,
                       const char *actor, const char *reason, ProcessMoved **ret_list, Error *reterr)
{
    TxOptions options = {
        .name = "process_move", .deadline = deadline, .lock_ms = lock_ms, .arena = arena, .keyed = true};
    int count;

    TRY(db_call_many(pool, &options, sql_process_move,
                     DB_ARGS(db_uuids(arena, names.ids, names.count),
                             names.domains ? db_texts(arena, names.domains, names.count) : db_null(), db_i32(version),
                             db_text(actor), db_text(reason)),
                     &moved_shape, ret_list, &count, reterr));
    if (count != names.count)
        return fail(reterr, ERR_INTERNAL, "%d processes have %d verdicts", names.count, count);
    return OK;
}

ErrorCode process_moved_check(const char *process_id, int version, const ProcessMoved *moved, Error *reterr)
{
    if (strcmp(moved->verdict, "MOVED") == 0)
        return OK;
    if (strcmp(moved->verdict, "NOT_FOUND") == 0)
        return fail(reterr, ERR_NOT_FOUND, "process %s not found", process_id);
    if (strcmp(moved->verdict, "LOCKED") == 0)
        return fail(reterr, ERR_BUSY, "process %s is locked by another transaction: try again", process_id);
    if (strcmp(moved->verdict, "NO_VERSION") == 0)
        return fail(reterr, ERR_NOT_FOUND, "the definition of process %s has no version %d", process_id, version);
    if (strcmp(moved->verdict, "DIFFERS") == 0)
        return fail(reterr, ERR_CONFLICT, "process %s cannot be moved from version %d to %d: %s", process_id,
                    moved->from_version, version, moved->reason);
    if (strcmp(moved->verdict, "OLDER") == 0)
        return fail(reterr, ERR_CONFLICT, "process %s has version %d, which is newer than %d", process_id,
                    moved->from_version, version);
    if (strcmp(moved->verdict, "CODE") == 0)
        return fail(reterr, ERR_CONFLICT, "process %s has no definition: its steps are code", process_id);
    if (strcmp(moved->verdict, "RUNNING") == 0)
        return fail(reterr, ERR_CONFLICT, "process %s runs right now: try again", process_id);
    return fail(reterr, ERR_CONFLICT, "process %s has ended already", process_id);
}

void process_moved_write(Writer *writer, const char *process_id, int version, const ProcessMoved *moved)
{
    writer_object(writer, NULL);
    writer_text(writer, "process_id", process_id);
    writer_i64(writer, "version", version);
    writer_i64(writer, "from_version", moved->from_version);
    writer_text(writer, "operator", moved->operator);
    writer_time(writer, "moved_at", moved->moved_at);
    writer_end(writer);
}
