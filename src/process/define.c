/*
 * define.c - store and read definitions; see process.h.
 */
#include "base/log.h"
#include "pg/tx.h"
#include "process/process.h"
#include "sql.h"

#define NOTIFY_MS 1000

DB_SHAPE(defined, ProcessDefined, PROCESS_DEFINED_COLUMNS);

/* After the commit, as waker.h does it. Without it pods find the definition by polling. */
static void defined_notify(Pool *pool, Deadline deadline, const char *domain)
{
    scoped(arena_free) Arena *arena   = arena_new(ARENA_BYTES_DEFAULT);
    TxOptions                 options = {.name     = "define_notify",
                                         .deadline = deadline_sooner(deadline, deadline_in_ms(NOTIFY_MS)),
                                         .arena    = arena,
                                         .keyed    = true};
    Error                     error   = {0};
    const char               *none;

    if (db_call(pool, &options, sql_process_define_notify, DB_ARGS(db_text(DEFINITION_CHANNEL), db_text(domain)),
                &db_text_shape, &none, &error) != OK)
        log_error(LOG_DEBUG, "process", "no notification of a definition was sent; pods poll", &error);
}

ErrorCode process_define(Pool *pool, Deadline deadline, int lock_ms, const Definition *definition, const char *author,
                         ProcessDefined *ret_defined, Error *reterr)
{
    scoped(arena_free) Arena *arena   = arena_new(ARENA_BYTES_DEFAULT + 8 * DEFINITION_BYTES_MAX);
    TxOptions                 options = {
                        .name = "process_define", .deadline = deadline, .lock_ms = lock_ms, .arena = arena, .keyed = true};
    const char *source = arena_bytes(arena, definition->text.bytes, definition->text.size);
    Text        steps;
    Writer      writer;

    text_init(&steps, arena, 3 * DEFINITION_BYTES_MAX);
    writer_open(&writer, &steps);
    definition_rows_write(definition, &writer);
    if (text_is_full(&steps))
        return fail(reterr, ERR_LIMIT, "the steps of definition \"%s\" are too large", definition->type);
    TRY(db_call(pool, &options, sql_process_define,
                DB_ARGS(db_text(definition->domain), db_text(definition->type), db_text(source),
                        definition->deadline_ms ? db_i64(definition->deadline_ms) : db_null(),
                        db_text(failure_actions[definition->on_deadline]), db_text(author),
                        db_jsonb(text_string(&steps))),
                &defined_shape, ret_defined, reterr));
    if (ret_defined->is_new)
        defined_notify(pool, deadline, definition->domain);
    return OK;
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

/* ---- read ---- */

DB_SHAPE(version, ProcessVersion, PROCESS_VERSION_COLUMNS);

ErrorCode process_versions(Pool *pool, Deadline deadline, Arena *arena, const ProcessVersionFilter *filter,
                           ProcessVersion **ret_list, int *ret_count, Error *reterr)
{
    TxOptions options = {.name = "process_versions", .deadline = deadline, .arena = arena, .read_only = true};

    return db_call_many(pool, &options, sql_process_definitions,
                        DB_ARGS(db_text(filter->domain), db_text(filter->type),
                                filter->version ? db_i32((int32_t)filter->version) : db_null(),
                                filter->before ? db_i64(filter->before) : db_null(), db_i32(filter->limit),
                                db_bound(arena, filter->bound)),
                        &version_shape, ret_list, ret_count, reterr);
}

void process_version_write(Writer *writer, const ProcessVersion *version)
{
    writer_object(writer, NULL);
    writer_text(writer, "domain", version->domain);
    writer_text(writer, "type", version->type);
    writer_i64(writer, "version", version->version);
    writer_time(writer, "created_at", version->created_at);
    writer_text(writer, "author", version->author);
    writer_end(writer);
}

ErrorCode process_version_source(Pool *pool, Deadline deadline, Arena *arena, const ProcessVersion *version,
                                 const char **ret_source, Error *reterr)
{
    TxOptions options = {.name = "process_source", .deadline = deadline, .arena = arena, .read_only = true};

    return db_call(pool, &options, sql_process_definition_source, DB_ARGS(db_i64(version->id)), &db_text_shape,
                   ret_source, reterr);
}
