/*
 * command.c - every command of pawl.
 */
#include "cli/command.h"

static const CommandFlag list_flags[] = {
    {"--status", "S",  "only those with this status"        },
    {"--type",   "T",  "only those of this type"            },
    {"--limit",  "N",  "at most this many, 100 unless given"},
    {NULL,       NULL, NULL                                 },
};
static const CommandFlag key_flags[] = {
    {"--scopes",  "LIST", "read, wallet, command, process, rating, admin, joined by commas; read unless given"},
    {"--expires", "TIME", "how long it is valid: 90d, 12h; for ever unless given"                             },
    {NULL,        NULL,   NULL                                                                                },
};
static const CommandFlag doctor_flags[] = {
    {"--long-tx", "TIME", "warn about transactions open for this long: 30s, 10m; 5m unless given"},
    {NULL,        NULL,   NULL                                                                   },
};
static const CommandFlag stop_flags[] = {
    {"--force", NULL, "also when other processes use it"},
    {NULL,      NULL, NULL                              },
};

/* clang-format off */
const Command commands[] = {
    {"serve",   NULL,     "",          0, 0, command_serve,          NULL,       "run the daemon until a signal ends it"},
    {"migrate", NULL,     "",          0, 0, command_migrate,        NULL,       "bring the schema up to date"},
    {"migrate", "status", "",          0, 0, command_migrate_status, NULL,       "show which migrations are applied"},
    {"doctor",  NULL,     "",          0, 0, command_doctor,         doctor_flags, "check everything and say what to do"},
    {"db",      "start",  "",          0, 0, command_db_start,       NULL,       "start the private PostgreSQL and leave it running"},
    {"db",      "stop",   "",          0, 0, command_db_stop,        stop_flags, "stop the private PostgreSQL"},
    {"db",      "status", "",          0, 0, command_db_status,      NULL,       "show the private PostgreSQL"},
    {"db",      "url",    "",          0, 0, command_db_url,         NULL,       "print the URL of the database that pawl uses"},
    {"dlq",     "list",   "",          0, 0, command_dlq_list,       list_flags, "list operations that failed, newest first"},
    {"dlq",     "show",   "ID",        1, 1, command_dlq_show,       NULL,       "show one of them"},
    {"dlq",     "retry",  "ID",        1, 1, command_dlq_retry,      NULL,       "try one again at once"},
    {"dlq",     "delete", "ID",        1, 1, command_dlq_delete,     NULL,       "forget one"},
    {"key",     "create", "NAME",      1, 1, command_key_create,     key_flags,  "make an API key; its token is shown once"},
    {"key",     "list",   "",          0, 0, command_key_list,       NULL,       "list API keys"},
    {"key",     "revoke", "NAME|ID",   1, 1, command_key_revoke,     NULL,       "revoke an API key"},
    {"help",    NULL,     "[TOPIC]",   0, 1, command_help,           NULL,       "a command, settings, metrics, errors or routes"},
    {"version", NULL,     "",          0, 0, command_version,        NULL,       "print the version"},
};
/* clang-format on */

const size_t command_count = COUNT(commands);
