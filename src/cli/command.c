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

static const CommandFlag send_flags[] = {
    {"--id",             "UUID",  "sent twice with the same id it is one command"          },
    {"--delay",          "TIME",  "not before: 10s, 2h"                                    },
    {"--priority",       "N",     "0 to 9, 9 is first; 4 unless given"                     },
    {"--max-attempts",   "N",     "1 to 1000; 3 unless given"                              },
    {"--reply-to",       "QUEUE", "queue that gets the outcome"                            },
    {"--correlation-id", "TEXT",  "goes into the reply"                                    },
    {"--batch",          "UUID",  "part of this batch"                                     },
    {"--lines",          NULL,    "one payload per line of standard input, sent in batches"},
    {NULL,               NULL,    NULL                                                     },
};
static const CommandFlag work_flags[] = {
    {"--exec",    "PROGRAM",  "run this program for each command"                           },
    {"--sql",     "FUNCTION", "a function for each, in the transaction that ends it"        },
    {"--noop",    NULL,       "complete everything: for measuring"                          },
    {"-j",        "N",        "how many at once; 8 unless given"                            },
    {"--batch",   "N",        "most commands in one claim"                                  },
    {"--lease",   "TIME",     "how long a lease lasts without a heartbeat; 30s unless given"},
    {"--timeout", "TIME",     "how long one command may take"                               },
    {"--type",    "T",        "only commands of this type"                                  },
    {"--drain",   NULL,       "end when nothing is left"                                    },
    {NULL,        NULL,       NULL                                                          },
};
static const CommandFlag command_flags[] = {
    {"--domain", "D",  "only this domain"                                           },
    {"--status", "S",  "PENDING, IN_PROGRESS, IN_TSQ, COMPLETED, FAILED or CANCELED"},
    {"--type",   "T",  "only this type"                                             },
    {"--limit",  "N",  "at most this many, 100 unless given"                        },
    {"--count",  NULL, "only how many"                                              },
    {NULL,       NULL, NULL                                                         },
};
static const CommandFlag decide_flags[] = {
    {"--operator", "NAME", "who decides; the user of this process unless given"  },
    {"--reason",   "TEXT", "why"                                                 },
    {"--result",   "JSON", "complete: what the handler would have returned"      },
    {"--all",      NULL,   "all that match --domain and --type instead of one ID"},
    {"--domain",   "D",    "only this domain"                                    },
    {"--type",     "T",    "only this type"                                      },
    {"--yes",      NULL,   "with --all: really"                                  },
    {NULL,         NULL,   NULL                                                  },
};
static const CommandFlag bench_commands_flags[] = {
    {"--count",     "N",    "commands in each round; 200000 unless given"                     },
    {"--rounds",    "N",    "how often each figure is measured; 3 unless given"               },
    {"--clients",   "N",    "threads that send; 2 unless given"                               },
    {"--batch",     "N",    "commands in one send; 1000 unless given"                         },
    {"--single",    NULL,   "send one at a time from each client, instead of in batches"      },
    {"--delayed",   "N",    "handle with N delayed commands in the domain, in turns with none"},
    {"--processes", "N",    "handle by N processes together, in turns with one"               },
    {"--rate",      "N",    "commands a second for the three below; 2000 unless given"        },
    {"--paced",     "TIME", "offer the rate for so long: 60s, 10m"                            },
    {"--hold",      "TIME", "the same while another connection holds an old snapshot"         },
    {"--hold-xid",  "TIME", "the same while it also holds a transaction number"               },
    {NULL,          NULL,   NULL                                                              },
};
static const CommandFlag bench_latency_flags[] = {
    {"--rate",    "N",  "commands a second; 100 unless given"},
    {"--seconds", "N",  "for how long; 20 unless given"      },
    {NULL,        NULL, NULL                                 },
};

/* clang-format off */
const CliCommand cli_commands[] = {
    {"serve",   NULL,     "",          0, 0, command_serve,          NULL,       "run the daemon until a signal ends it"},
    {"send",    NULL,     "DOMAIN TYPE [JSON|-]", 2, 3, command_send,  send_flags, "send a command"},
    {"work",    NULL,     "DOMAIN",    1, 1, command_work,           work_flags, "handle the commands of a domain"},
    {"command", "show",   "ID",        1, 1, command_command_show,   NULL,       "show one command and what happened to it"},
    {"command", "list",   "",          0, 0, command_command_list,   command_flags, "list commands, newest first"},
    {"command", "cancel", "ID",        1, 1, command_command_cancel, decide_flags, "cancel one"},
    {"tsq",     "list",   "",          0, 0, command_tsq_list,       command_flags, "list what waits for an operator"},
    {"tsq",     "retry",  "[ID]",      0, 1, command_tsq_retry,      decide_flags, "try it again, attempts begin anew"},
    {"tsq",     "cancel", "[ID]",      0, 1, command_tsq_cancel,     decide_flags, "give it up"},
    {"tsq",     "complete", "[ID]",    0, 1, command_tsq_complete,   decide_flags, "it is done"},
    {"batch",   "show",   "ID",        1, 1, command_batch_show,     NULL,       "show how far a batch is"},
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
    {"bench",   "commands", "",        0, 0, command_bench_commands, bench_commands_flags, "measure sending and handling, in a throwaway database"},
    {"bench",   "latency", "",         0, 0, command_bench_latency,  bench_latency_flags, "measure the time from send to start of handler"},
    {"help",    NULL,     "[TOPIC]",   0, 1, command_help,           NULL,       "a command, settings, metrics, errors or routes"},
    {"version", NULL,     "",          0, 0, command_version,        NULL,       "print the version"},
};
/* clang-format on */

const size_t cli_command_count = COUNT(cli_commands);
