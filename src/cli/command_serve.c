/*
 * command_serve.c - serve and migrate.
 */
#include "app/daemon.h"
#include "base/writer.h"
#include "cli/command.h"
#include "cli/print.h"
#include "pg/migrate.h"
#include "sql.h"

ErrorCode command_serve(Call *call, Error *reterr)
{
    call->given.is_daemon = true;
    return daemon_run(&call->given, reterr);
}

ErrorCode command_migrate(Call *call, Error *reterr)
{
    scoped(app_close) App *app     = NULL;
    int                    applied = 0;

    TRY(app_open(&call->given, APP_DATABASE, &app, reterr));
    TRY(migrate_run(app->pool, &schema_embedded, deadline_in_ms(APP_START_MS), &applied, reterr));
    if (call->json)
        printf("{\"applied\":%d,\"version\":%d}\n", applied, schema_embedded.migration_count);
    else if (applied)
        printf("applied %d, the schema is at version %d\n", applied, schema_embedded.migration_count);
    else
        printf("nothing to do, the schema is at version %d\n", schema_embedded.migration_count);
    return OK;
}

static void status_json(Call *call, const MigrationStatus *list, int count)
{
    Text   text;
    Writer writer;

    text_init(&text, call->arena, TEXT_MAX_BODY);
    writer_open(&writer, &text);
    writer_array(&writer, NULL);
    for (int i = 0; i < count; i++) {
        writer_object(&writer, NULL);
        writer_i64(&writer, "version", list[i].version);
        writer_text(&writer, "name", list[i].name);
        writer_text(&writer, "state", list[i].state);
        writer_text(&writer, "applied_at", list[i].applied_at);
        writer_end(&writer);
    }
    writer_end(&writer);
    print_json(&text);
}

ErrorCode command_migrate_status(Call *call, Error *reterr)
{
    static const char *const head[] = {">version", "name", "state", "applied at", NULL};
    scoped(app_close) App   *app    = NULL;
    MigrationStatus         *list;
    int                      count;
    Table                    table;

    TRY(app_open(&call->given, APP_DATABASE, &app, reterr));
    TRY(migrate_status(app->pool, &schema_embedded, deadline_in_ms(APP_COMMAND_MS), call->arena, &list, &count,
                       reterr));
    if (call->json) {
        status_json(call, list, count);
        return OK;
    }
    table_init(&table, call->arena, head);
    for (int i = 0; i < count; i++) {
        table_cell_i64(&table, list[i].version);
        table_cell(&table, list[i].name);
        table_cell(&table, list[i].state);
        table_cell(&table, list[i].applied_at);
    }
    table_print(&table, "no migrations");
    return OK;
}
