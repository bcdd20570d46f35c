/*
 * define.c - store definitions; see process.h.
 */
#include "pg/tx.h"
#include "process/process.h"
#include "sql.h"

DB_SHAPE(defined, ProcessDefined, PROCESS_DEFINED_COLUMNS);

ErrorCode process_define(Pool *pool, Deadline deadline, const Definition *definition, const char *author,
                         ProcessDefined *ret_defined, Error *reterr)
{
    scoped(arena_free) Arena *arena   = arena_new(ARENA_BYTES_DEFAULT + 8 * DEFINITION_BYTES_MAX);
    TxOptions                 options = {.name = "process_define", .deadline = deadline, .arena = arena, .keyed = true};
    const char               *source  = arena_bytes(arena, definition->text.bytes, definition->text.size);
    bool                      is_late = definition->deadline_ms > 0;

    return db_call(pool, &options, sql_process_define,
                   DB_ARGS(db_text(definition->domain), db_text(definition->type), db_text(source),
                           is_late ? db_i64(definition->deadline_ms) : db_null(),
                           db_text(is_late ? failure_actions[definition->on_deadline] : NULL), db_text(author)),
                   &defined_shape, ret_defined, reterr);
}

void process_defined_write(Writer *writer, const Definition *definition, const ProcessDefined *defined)
{
    writer_object(writer, NULL);
    writer_text(writer, "domain", definition->domain);
    writer_text(writer, "type", definition->type);
    writer_i64(writer, "version", defined->version);
    writer_i64(writer, "steps", definition->count);
    writer_i64(writer, "compensations", definition->compensation_count);
    writer_end(writer);
}
