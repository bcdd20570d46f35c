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
    call->given.is_json   = call->json;
    return daemon_run(&call->given, reterr);
}

ErrorCode command_migrate(Call *call, Error *reterr)
{
    int applied = 0;

    TRY(call_open(call, APP_DATABASE, reterr));
    TRY(migrate_run(call->pool, &schema_embedded, deadline_in_ms(APP_START_MS), &applied, reterr));
    if (call->json)
        printf("{\"applied\":%d,\"version\":%d}\n", applied, schema_embedded.migration_count);
    else if (applied)
        printf("applied %d, the schema is at version %d\n", applied, schema_embedded.migration_count);
    else
        printf("nothing to do, the schema is at version %d\n", schema_embedded.migration_count);
    return OK;
}

static const ListColumn status_columns[] = {
    {">version",   "version",    CELL_I32,  offsetof(MigrationStatus, version)   },
    {"name",       "name",       CELL_TEXT, offsetof(MigrationStatus, name)      },
    {"state",      "state",      CELL_TEXT, offsetof(MigrationStatus, state)     },
    {"applied at", "applied_at", CELL_TEXT, offsetof(MigrationStatus, applied_at)},
};
static const ListShape status_shape = {status_columns, COUNT(status_columns), sizeof(MigrationStatus),
                                       .none = "no migrations"};

ErrorCode command_migrate_status(Call *call, Error *reterr)
{
    MigrationStatus *list;
    int              count;

    TRY(call_open(call, APP_DATABASE, reterr));
    TRY(migrate_status(call->pool, &schema_embedded, deadline_in_ms(APP_COMMAND_MS), call->arena, &list, &count,
                       reterr));
    list_print(&status_shape, call->arena, call->json, list, count);
    return OK;
}
