/*
 * command.c - every command of pawl.
 */
#include "cli/command.h"

#include "cli/outcome.h"

static const CommandFlag serve_flags[] = {
    {"--listen", "ADDRESS:PORT", "HTTP address; port 0 chooses a free port; default: 127.0.0.1:8080"                 },
    {"--role",   "LIST",         "what it does: any of api, worker, monitor, bot, comma-separated; default: all four"},
    {NULL,       NULL,           NULL                                                                                },
};
static const CommandFlag list_flags[] = {
    {"--status", "S",  "only those with this status"    },
    {"--type",   "T",  "only those of this type"        },
    {"--limit",  "N",  "at most this many; default: 100"},
    {NULL,       NULL, NULL                             },
};
static const CommandFlag key_flags[] = {
    {"--scopes",   "LIST",
     "read, send, work, process, post, mint, wallets, operate, rating, admin, comma-separated; default: read"         },
    {"--domains",  "LIST", "it touches only these domains: names, or prefixes such as shop.*, comma-separated"        },
    {"--owners",   "LIST", "it touches only wallets of these owners: names, or prefixes such as eu/*, comma-separated"},
    {"--expires",  "TIME", "validity: 90d, 12h; default: no limit"                                                    },
    {"--operator", "NAME", "who decides, for the audit; default: the operating system's user"                         },
    {"--reason",   "TEXT", "why, for the audit"                                                                       },
    {NULL,         NULL,   NULL                                                                                       },
};
static const CommandFlag key_revoke_flags[] = {
    {"--operator", "NAME", "who decides, for the audit; default: the operating system's user"},
    {"--reason",   "TEXT", "why, for the audit"                                              },
    {NULL,         NULL,   NULL                                                              },
};
static const CommandFlag doctor_flags[] = {
    {"--long-tx", "TIME", "warn about transactions open for this long: 30s, 10m; default: 5m"},
    {NULL,        NULL,   NULL                                                               },
};
static const CommandFlag stop_flags[] = {
    {"--force", NULL, "even if other programs use it"},
    {NULL,      NULL, NULL                           },
};

static const CommandFlag url_flags[] = {
    {"--admin", NULL, "print the URL of the superuser, for backups and changes to the database"},
    {NULL,      NULL, NULL                                                                     },
};

static const CommandFlag send_flags[] = {
    {"--id",             "UUID",   "idempotency key: sending twice with the same id sends one command; default: generated" },
    {"--key",            "TEXT",   "the same with any text, such as order-17: it becomes the id, and counts in all domains"},
    {"--delay",          "TIME",   "do not run it before this time has passed: 10s, 2h"                                    },
    {"--priority",       "N",      "0 to 9, 9 is first; default: 4"                                                        },
    {"--max-attempts",   "N",      "1 to 1000; default: 3"                                                                 },
    {"--reply-to",       "TARGET", "queue that gets the outcome, or command:DOMAIN/TYPE: the outcome becomes this command" },
    {"--correlation-id", "TEXT",   "copied into the reply"                                                                 },
    {"--batch",          "UUID",   "add it to this batch"                                                                  },
    {"--order-key",      "KEY",    "commands of the domain with the same key run one at a time, in the order of sending"   },
    {"--unique",         "KEY",    "send nothing while another command of the domain and type has this key: print its id"  },
    {"--unique-for",     "SCOPE",  "how long a command has its key: queued, active or a time such as 1h; default: active"  },
    {"--on-duplicate",   "ACTION", "keep the other command, replace its payload or move its time; default: keep"           },
    WAIT_FLAG,
    {"--lines",          NULL,     "one payload per line of standard input, sent in batches"                               },
    {NULL,               NULL,     NULL                                                                                    },
};
static const CommandFlag work_flags[] = {
    {"--exec",    "PROGRAM",  "run this shell command line for each command, with the payload on its standard input"  },
    {"--sql",     "FUNCTION",
     "schema.function(payload jsonb, command_id uuid) returns jsonb, called in the transaction that ends the command" },
    {"--noop",    NULL,       "complete every command, for measurements"                                              },
    {"-j",        "N",        "how many handlers run at the same time; default: 8"                                    },
    {"--batch",   "N",        "most commands per claim; default: as many as the worker can use"                       },
    {"--lease",   "TIME",     "how long a lease lasts without a heartbeat; default: 30s"                              },
    {"--timeout", "TIME",     "how long one handler may run; default: no limit"                                       },
    {"--alone",   NULL,       "each call of the function has a transaction of its own; default: short ones share some"},
    {"--type",    "LIST",     "only commands of these types, comma-separated"                                         },
    {"--drain",   NULL,       "exit when no command of the claimed types is queued, delayed or in progress"           },
    {NULL,        NULL,       NULL                                                                                    },
};
static const CommandFlag batch_flags[] = {
    {"--id",          "UUID", "idempotency key: creating twice with the same id creates one batch; default: generated"},
    {"--name",        "TEXT", "name that batch show prints"                                                           },
    {"--on-complete", "JSON", "{\"domain\", \"type\", \"payload\"}: a command to send when all have ended"            },
    {NULL,            NULL,   NULL                                                                                    },
};
#define COMMAND_FILTERS                                                                               \
    {"--since", "TIME", "not sent before this moment: 2026-11-15, or 1h for an hour ago"},            \
        {"--until", "TIME", "not sent after this moment"}, {"--batch", "UUID", "only of this batch"}, \
        {"--correlation-id", "TEXT", "only with this correlation id"},                                \
        {"--key", "TEXT", "only those that this login has sent with this --key"},                     \
    {                                                                                                 \
        "--order-key", "KEY", "only with this order key"                                              \
    }
static const CommandFlag command_flags[] = {
    {"--domain", "D",  "only this domain"                                           },
    {"--status", "S",  "PENDING, IN_PROGRESS, IN_TSQ, COMPLETED, FAILED or CANCELED"},
    {"--type",   "T",  "only this type"                                             },
    COMMAND_FILTERS,
    {"--limit",  "N",  "at most this many; default: 100"                            },
    {"--count",  NULL, "print only their number"                                    },
    {NULL,       NULL, NULL                                                         },
};
static const CommandFlag tsq_flags[] = {
    {"--domain", "D",  "only this domain"               },
    {"--type",   "T",  "only this type"                 },
    COMMAND_FILTERS,
    {"--limit",  "N",  "at most this many; default: 100"},
    {"--count",  NULL, "print only their number"        },
    {NULL,       NULL, NULL                             },
};
static const CommandFlag show_flags[] = {
    {"--domain", "D",  "its domain, if several domains have this id"},
    {NULL,       NULL, NULL                                         },
};
static const CommandFlag define_flags[] = {
    {"--check",   NULL, "only check it, without a database"                },
    {"--diagram", NULL, "only check it and print it as a Mermaid flowchart"},
    {NULL,        NULL, NULL                                               },
};
static const CommandFlag definitions_flags[] = {
    {"--domain",  "D",  "only this domain"                        },
    {"--version", "N",  "print the file of this version of TYPE"  },
    {"--limit",   "N",  "at most this many versions; default: 100"},
    {NULL,        NULL, NULL                                      },
};
static const CommandFlag reply_list_flags[] = {
    {"--limit", "N",  "at most this many; default: 100"},
    {NULL,      NULL, NULL                             },
};
static const CommandFlag reply_read_flags[] = {
    {"--limit",   "N",    "at most this many; default: 100"                                                 },
    {"--visible", "TIME", "after this time they are read again, unless they were acknowledged; default: 30s"},
    {NULL,        NULL,   NULL                                                                              },
};
static const CommandFlag process_start_flags[] = {
    {"--id",          "UUID",          "idempotency key: starting twice with the same id starts one process; default: generated"},
    {"--key",         "TEXT",          "the same with any text, such as order-17: it becomes the id, and counts in all domains" },
    {"--domain",      "D",             "the domain of its definition; default: \"process\""                                     },
    {"--delay",       "TIME",          "do not begin it before this time has passed: 10s, 2h"                                   },
    {"--priority",    "N",             "0 to 9, 9 is first; default: 4"                                                         },
    {"--deadline",    "DURATION|TIME",
     "how long from when it is due, such as 2h, or a time; default: that of its definition"                                     },
    {"--on-deadline", "ACTION",
     "fail, compensate or troubleshoot, when the deadline passes; default: that of its definition, or troubleshoot "
     "without one"                                                                                                              },
    WAIT_FLAG,
    {"--lines",       NULL,            "one state per line of standard input, started in batches"                               },
    {NULL,            NULL,            NULL                                                                                     },
};
static const CommandFlag process_list_flags[] = {
    {"--domain", "D",    "only this domain"                                                   },
    {"--type",   "T",    "only this type"                                                     },
    {"--status", "S",
     "PENDING, IN_PROGRESS, WAITING_FOR_REPLY, WAITING_FOR_ASYNC, WAITING_FOR_RETRY, "
     "WAITING_FOR_TSQ, COMPENSATING, COMPLETED, FAILED, CANCELED or COMPENSATED"              },
    {"--step",   "NAME", "only those whose last step, or the step they wait in, has this name"},
    {"--older",  "TIME", "only those started at least this long ago: 30m, 2d"                 },
    {"--text",   "TEXT", "only those with this text in their state"                           },
    {"--limit",  "N",    "at most this many; default: 100"                                    },
    {NULL,       NULL,   NULL                                                                 },
};
static const CommandFlag process_signal_flags[] = {
    {"--key",    "K",  "applied once per process, NAME and key; default: generated"                       },
    {"--step",   "S",  "the wait that it answers, as shown: approval, approval[2]; no other wait takes it"},
    {"--domain", "D",  "its domain, if several domains have this id"                                      },
    {NULL,       NULL, NULL                                                                               },
};
/* Who decides, and about what: one process, or all that match. */
#define PROCESS_DECISION_FLAGS                                                                                         \
    {"--operator", "NAME", "name of the operator; default: the operating system's user"}, {"--reason", "TEXT", "why"}, \
        {"--domain", "D", "its domain, if several domains have this id; with --all, only this domain"},                \
        {"--all", NULL, "all that match the flags below instead of one ID"}, {"--type", "T", "only this type"},        \
        {"--status", "S", "only this status, see pawl process list"},                                                  \
        {"--step", "NAME", "only those whose last step, or the step they wait in, has this name"},                     \
        {"--older", "TIME", "only those started at least this long ago: 30m, 2d"},                                     \
        {"--text", "TEXT", "only those with this text in their state"},                                                \
        {"--dry-run", NULL, "only count the processes that match"}, {"--yes", NULL, "confirm --all"},                  \
    {                                                                                                                  \
        NULL, NULL, NULL                                                                                               \
    }
static const CommandFlag process_retry_flags[] = {
    {"--from", "STEP",
     "run this step and what follows it again, with new keys; without it, continue at the step that failed"},
    PROCESS_DECISION_FLAGS,
};
static const CommandFlag process_cancel_flags[] = {
    {"--compensate", NULL, "first run the compensations of the steps that have ended"},
    PROCESS_DECISION_FLAGS,
};
static const CommandFlag process_complete_flags[] = {
    {"--result", "JSON", "result of the process; default: null"},
    PROCESS_DECISION_FLAGS,
};
static const CommandFlag process_move_flags[] = {
    {"--to", "VERSION", "version of the definition, newer than the present one"},
    PROCESS_DECISION_FLAGS,
};
static const CommandFlag policy_flags[] = {
    {"--type", "T",  "the policy of this type; default: that of the domain"},
    {NULL,     NULL, NULL                                                  },
};
static const CommandFlag policy_set_flags[] = {
    {"--type",      "T",    "the policy of this type; default: that of the domain"                                },
    {"--order-key", "RULE", "what a command in the troubleshooting queue does with its order key: hold or release"},
    {NULL,          NULL,   NULL                                                                                  },
};
static const CommandFlag domain_list_flags[] = {
    {"--order", "ORDER", "name, or depth: those with most queued commands first; default: name"},
    {"--limit", "N",     "at most this many; default: 100"                                     },
    {NULL,      NULL,    NULL                                                                  },
};
static const CommandFlag schedule_create_flags[] = {
    {"--cron",     "EXPR",
     "minute, hour, day, month and weekday: '30 2 * * mon-fri', or @hourly, @daily, @weekly, @monthly"},
    {"--timezone", "ZONE", "of --cron, such as Europe/Berlin; default: UTC"                           },
    {"--every",    "TIME", "instead of --cron: 10m, 24h, counted from 1970-01-01 00:00 UTC"           },
    {"--process",  NULL,   "it starts processes; default: it sends commands"                          },
    {"--missed",   "RULE",
     "of the times that passed while nothing fired them: skip, once (the last one) or all (the last 100); default: "
     "once"                                                                                           },
    {"--overlap",  "RULE", "when the last command has not ended: allow, skip or queue; default: allow"},
    {"--jitter",   "TIME", "fire each time up to this much later; default: 0s"                        },
    {"--replace",  NULL,   "replace a schedule of this name"                                          },
    {"--operator", "NAME", "name of the operator; default: the operating system's user"               },
    {"--reason",   "TEXT", "why"                                                                      },
    {NULL,         NULL,   NULL                                                                       },
};
static const CommandFlag schedule_list_flags[] = {
    {"--domain", "D",  "only this domain"               },
    {"--type",   "T",  "only this type"                 },
    {"--status", "S",  "active, paused or failing"      },
    {"--limit",  "N",  "at most this many; default: 100"},
    {NULL,       NULL, NULL                             },
};
static const CommandFlag schedule_next_flags[] = {
    {"--count", "N",  "how many; default: 10"},
    {NULL,      NULL, NULL                   },
};
static const CommandFlag schedule_decide_flags[] = {
    {"--operator", "NAME", "name of the operator; default: the operating system's user"},
    {"--reason",   "TEXT", "why"                                                       },
    {NULL,         NULL,   NULL                                                        },
};
static const CommandFlag schedule_run_flags[] = {
    {"--id",       "UUID", "of the command or process: a repeat with the same id sends nothing; default: generated"},
    {"--operator", "NAME", "name of the operator; default: the operating system's user"                            },
    {"--reason",   "TEXT", "why"                                                                                   },
    {NULL,         NULL,   NULL                                                                                    },
};
static const CommandFlag domain_pause_flags[] = {
    {"--type",     "T",    "only this type of commands; default: the whole domain"     },
    {"--operator", "NAME", "name of the operator; default: the operating system's user"},
    {"--reason",   "TEXT", "why"                                                       },
    {NULL,         NULL,   NULL                                                        },
};
static const CommandFlag domain_limit_flags[] = {
    {"--type",     "T",    "only this type of commands; default: the whole domain"                                      },
    {"--running",  "N",    "at most so many run at the same time"                                                       },
    {"--rate",     "RATE", "at most so many begin in a second or minute: 100/s, 600/m"                                  },
    {"--burst",    "N",    "so many may begin at once after a rest; default: no second or minute has more than the rate"},
    {"--per-key",  NULL,   "for each key by itself, the order key up to its first slash; keys take turns"               },
    {"--none",     NULL,   "remove the limits, of the type or all of them"                                              },
    {"--operator", "NAME", "name of the operator; default: the operating system's user"                                 },
    {"--reason",   "TEXT", "why"                                                                                        },
    {NULL,         NULL,   NULL                                                                                         },
};
static const CommandFlag stats_flags[] = {
    {"--measure", "M",
     "sent, completed, retried, failed, rejected, wait, run, transfers, http_2xx, ...; default: a table of the "
     "domain's"                                                                                                   },
    {"--since",   "TIME", "from this moment on: 1h for an hour ago, 2026-11-15, 2026-11-15T10:30:00Z; default: 1h"},
    {"--step",    "TIME", "length of a step, in whole minutes: 1m, 1h; default: about 60 steps"                   },
    {NULL,        NULL,   NULL                                                                                    },
};
static const CommandFlag cancel_flags[] = {
    {"--domain",   "D",    "its domain, if several domains have this id; with --all, only this domain"},
    {"--operator", "NAME", "name of the operator; default: the operating system's user"               },
    {"--reason",   "TEXT", "why"                                                                      },
    {"--all",      NULL,   "all that match the flags below instead of one ID"                         },
    {"--status",   "S",    "PENDING, IN_PROGRESS or IN_TSQ; default: all of them"                     },
    {"--type",     "T",    "only this type"                                                           },
    COMMAND_FILTERS,
    {"--dry-run",  NULL,   "only count those that match"                                              },
    {"--yes",      NULL,   "confirm --all"                                                            },
    {NULL,         NULL,   NULL                                                                       },
};
static const CommandFlag delete_flags[] = {
    {"--domain",   "D",    "only this domain"                                          },
    {"--operator", "NAME", "name of the operator; default: the operating system's user"},
    {"--reason",   "TEXT", "why"                                                       },
    {"--all",      NULL,   "all that match the flags below instead of one ID"          },
    {"--status",   "S",    "COMPLETED, FAILED or CANCELED; default: all of them"       },
    {"--type",     "T",    "only this type"                                            },
    COMMAND_FILTERS,
    {"--dry-run",  NULL,   "only count those that match"                               },
    {"--yes",      NULL,   "confirm --all"                                             },
    {NULL,         NULL,   NULL                                                        },
};
/* clang-format off */
#define DECIDE_FLAGS                                                                \
    {"--operator", "NAME", "name of the operator; default: the operating system's user"},   \
    {"--reason",   "TEXT", "why"},                                                  \
    {"--all",      NULL,   "all that match the flags below instead of one ID"}, \
    {"--domain",   "D",    "only this domain; with an ID, its domain"},             \
    {"--type",     "T",    "only this type"},                                       \
    COMMAND_FILTERS,                                                                \
    {"--dry-run",  NULL,   "only count those that match"},                          \
    {"--yes",      NULL,   "confirm --all"}
/* clang-format on */
static const CommandFlag decide_flags[] = {
    DECIDE_FLAGS,
    {NULL, NULL, NULL},
};
static const CommandFlag complete_flags[] = {
    {"--result", "JSON", "what the handler would have returned; default: null"},
    DECIDE_FLAGS,
    {NULL,       NULL,   NULL                                                 },
};
static const CommandFlag bench_commands_flags[] = {
    {"--count",     "N",    "commands in each round; default: 200000"                         },
    {"--rounds",    "N",    "how often each figure is measured; default: 3"                   },
    {"--clients",   "N",    "threads that send; default: 2"                                   },
    {"--batch",     "N",    "commands in one send; default: 1000"                             },
    {"--single",    NULL,   "send one at a time from each client, instead of in batches"      },
    {"--delayed",   "N",    "handle with N delayed commands in the domain, in turns with none"},
    {"--processes", "N",    "handle with N programs together, alternately with one"           },
    {"--rate",      "N",    "commands per second for the three below; default: 2000"          },
    {"--paced",     "TIME", "offer the rate for so long: 60s, 10m"                            },
    {"--hold",      "TIME", "the same while another connection holds an old snapshot"         },
    {"--hold-xid",  "TIME", "the same while it also holds a transaction id"                   },
    {NULL,          NULL,   NULL                                                              },
};
static const CommandFlag bench_processes_flags[] = {
    {"--count",   "N",  "processes in each round; default: 30000"                              },
    {"--rounds",  "N",  "how often each figure is measured; default: 3"                        },
    {"--clients", "N",  "processes that run at the same time; default: 256"                    },
    {"--batch",   "N",  "processes in one start; default: 1000"                                },
    {"--closed",  NULL, "each client starts one process, waits for its end and starts the next"},
    {"--resume",  NULL, "from a response until its process runs"                               },
    {"--rate",    "N",  "responses per second for --resume; default: 100"                      },
    {"--seconds", "N",  "how long for --resume; default: 20"                                   },
    {"--waiting", "N",  "claim beside N processes that wait or sleep, in turns with none"      },
    {NULL,        NULL, NULL                                                                   },
};
static const CommandFlag bench_transfers_flags[] = {
    {"--count",    "N",    "transfers in each round; default: 100000"                                    },
    {"--rounds",   "N",    "how often each figure is measured; default: 3"                               },
    {"--clients",  "N",    "threads that post one transfer at a time; default: 64"                       },
    {"--wallets",  "N",    "wallets they move money between; default: 1000"                              },
    {"--hold-xid", "TIME", "post transfers for this long while another connection holds a transaction id"},
    {"--hot",      NULL,   "all of them pay from one wallet, in turns with any"                          },
    {"--arrays",   "N",    "N transfers in one call, from one thread"                                    },
    {"--history",  "N",    "read a wallet with N entries, in turns with one that has 10"                 },
    {"--verify",   "N",    "verify a ledger of N entries"                                                },
    {NULL,         NULL,   NULL                                                                          },
};
static const CommandFlag bench_bot_flags[] = {
    {"--count",   "N",  "updates in each round, a match each; default: 20000"                   },
    {"--rounds",  "N",  "how often each figure is measured; default: 3"                         },
    {"--clients", "N",  "updates that are handled at the same time; default: 128"               },
    {"--groups",  "N",  "groups that they come from in turn, with 8 players each; default: 2000"},
    {NULL,        NULL, NULL                                                                    },
};
static const CommandFlag bench_latency_flags[] = {
    {"--rate",    "N",  "commands per second; default: 100"},
    {"--seconds", "N",  "for how long; default: 20"        },
    {NULL,        NULL, NULL                               },
};

/* clang-format off */
#define WALLET_KEY      {"--txn-id", "UUID", "idempotency key: posting twice with the same key posts once; default: generated"}, \
                        {"--key", "TEXT", "the same with any text, such as order-17: it becomes the txn_id"}
#define WALLET_ASSET    {"--asset", "A", "default: CREDIT"}
#define WALLET_REF_ASSET {"--asset", "A", "refuse it unless ID is in this asset; default: not checked"}
#define WALLET_METADATA {"--metadata", "JSON", "an object stored with it"}
#define WALLET_SINCE    {"--since", "TIME", "from this moment on: 2026-11-15, 2026-11-15T10:30:00Z, or 2d for two days ago"}
#define WALLET_UNTIL    {"--until", "TIME", "up to this moment"}
#define FLAGS_END       {NULL, NULL, NULL}
static const CommandFlag wallet_flags[] = {WALLET_KEY, WALLET_ASSET, WALLET_METADATA, FLAGS_END};
static const CommandFlag wallet_void_flags[] = {WALLET_KEY, WALLET_REF_ASSET, WALLET_METADATA, FLAGS_END};
static const CommandFlag wallet_create_flags[] = {
    {"--floor", "N", "how far it may go below zero, such as -500; default: 0"},
    WALLET_KEY, WALLET_ASSET, WALLET_METADATA, FLAGS_END,
};
static const CommandFlag wallet_hold_flags[] = {
    {"--expires-in", "TIME", "released after this time: 15m, 7d; default: never"},
    WALLET_KEY, WALLET_ASSET, WALLET_METADATA, FLAGS_END,
};
static const CommandFlag wallet_capture_flags[] = {
    {"--amount", "N", "a part of it; default: all that is left"},
    {"--to", "OWNER", "who gets it; default: @system"},
    WALLET_KEY, WALLET_REF_ASSET, WALLET_METADATA, FLAGS_END,
};
static const CommandFlag wallet_refund_flags[] = {
    {"--amount", "N", "a part of it; default: all that is left"},
    WALLET_KEY, WALLET_REF_ASSET, WALLET_METADATA, FLAGS_END,
};
static const CommandFlag wallet_balance_flags[] = {
    {"--at", "TIME", "at this moment: 2026-11-15, 2026-11-15T10:30:00Z, or 2d for two days ago"},
    {"--all", NULL, "every asset of this owner"},
    WALLET_ASSET, FLAGS_END,
};
static const CommandFlag wallet_entries_flags[] = {
    {"--limit", "N", "at most this many; default: 100"},
    {"--kind", "K", "only this kind: topup, spend, transfer, hold, capture, void, expire, refund, ..."},
    WALLET_SINCE, WALLET_UNTIL, WALLET_ASSET, FLAGS_END,
};
#define LIST_LIMIT {"--limit", "N", "at most this many; default: 100"}
#define LIST_SPAN  {"--since", "TIME", "not before this moment: 2026-11-15, 2026-11-15T10:30:00Z, or 1h for an hour ago"}, \
                   {"--until", "TIME", "not after this moment"}
#define LIST_OWNER {"--owner", "OWNER", "only this owner, or all whose name begins so: eu/*"}
#define LIST_ASSET {"--asset", "A", "only this asset"}
static const CommandFlag wallet_list_flags[] = {LIST_OWNER, LIST_ASSET, LIST_SPAN, LIST_LIMIT, FLAGS_END};
static const CommandFlag wallet_holds_flags[] = {
    LIST_OWNER, LIST_ASSET,
    {"--status", "S", "OPEN, CAPTURED, VOIDED or EXPIRED"},
    LIST_SPAN, LIST_LIMIT, FLAGS_END,
};
static const CommandFlag wallet_transactions_flags[] = {
    {"--owner", "OWNER", "only those in which this owner is on either side, or one whose name begins so: eu/*"},
    LIST_ASSET,
    {"--kind", "K", "only this kind: topup, spend, transfer, hold, capture, void, expire, refund, ..."},
    {"--status", "S", "posted or refused"},
    LIST_SPAN, LIST_LIMIT, FLAGS_END,
};
static const CommandFlag batch_list_flags[] = {
    {"--status", "S", "OPEN, SEALED or COMPLETED"},
    {"--name", "TEXT", "only this name"},
    LIST_SPAN, LIST_LIMIT, FLAGS_END,
};
static const CommandFlag wallet_statement_flags[] = {
    WALLET_SINCE, WALLET_UNTIL,
    {"--csv", NULL, "as comma-separated values"},
    WALLET_ASSET, FLAGS_END,
};
static const CommandFlag wallet_verify_flags[] = {
    {"--new", NULL, "only what was posted since the last clean verification"},
    FLAGS_END
};
static const CommandFlag wallet_batch_flags[] = {
    {"--atomic", NULL, "all of them or none"},
    FLAGS_END,
};

static const CommandFlag rating_flags[] = {
    {"--limit", "N", "at most this many; default: 100"},
    FLAGS_END,
};

const CliCommand cli_commands[] = {
    {"serve",   NULL,     "",          0, 0, command_serve,          serve_flags, "run the daemon until SIGTERM or SIGINT", PLACE_HERE},
    {"send",    NULL,     "DOMAIN TYPE [JSON|-]", 2, 3, command_send,  send_flags, "send a command", PLACE_ANY},
    {"work",    NULL,     "DOMAIN",    1, 1, command_work,           work_flags, "handle the commands of a domain", PLACE_HERE},
    {"command", "show",   "ID",        1, 1, command_command_show,   show_flags, "show one command with its audit", PLACE_ANY},
    {"command", "list",   "",          0, 0, command_command_list,   command_flags, "list commands, newest first", PLACE_ANY},
    {"command", "cancel", "[ID]",      0, 1, command_command_cancel, cancel_flags, "cancel a command", PLACE_ANY},
    {"command", "delete", "[ID]",      0, 1, command_command_delete, delete_flags, "delete a command that has ended; its key and audit stay", PLACE_DATABASE},
    {"tsq",     "list",   "",          0, 0, command_tsq_list,       tsq_flags,  "list the commands in the troubleshooting queue", PLACE_ANY},
    {"tsq",     "retry",  "[ID]",      0, 1, command_tsq_retry,      decide_flags, "queue a command in troubleshooting again, with its attempts reset", PLACE_ANY},
    {"tsq",     "cancel", "[ID]",      0, 1, command_tsq_cancel,     decide_flags, "end a command in troubleshooting as CANCELED", PLACE_ANY},
    {"tsq",     "complete", "[ID]",    0, 1, command_tsq_complete,   complete_flags, "end a command in troubleshooting as COMPLETED", PLACE_ANY},
    {"batch",   "create", "",          0, 0, command_batch_create,   batch_flags, "open a batch and print its id; add commands with send --batch", PLACE_ANY},
    {"batch",   "list",   "",          0, 0, command_batch_list,     batch_list_flags, "list batches, newest first", PLACE_ANY},
    {"batch",   "seal",   "ID",        1, 1, command_batch_seal,     NULL,       "seal a batch: no more commands can be added", PLACE_ANY},
    {"batch",   "show",   "ID",        1, 1, command_batch_show,     NULL,       "show the progress of a batch", PLACE_ANY},
    {"domain",  "list",   "",          0, 0, command_domain_list,    domain_list_flags, "list domains: how many commands each has where, and how long the oldest has been queued", PLACE_ANY},
    {"domain",  "show",   "DOMAIN",    1, 1, command_domain_show,    NULL,       "show one domain, and its processes", PLACE_ANY},
    {"domain",  "pause",  "DOMAIN",    1, 1, command_domain_pause,   domain_pause_flags, "pause a domain or a type of its commands: what runs goes on, nothing else begins", PLACE_ANY},
    {"domain",  "resume", "DOMAIN",    1, 1, command_domain_resume,  domain_pause_flags, "end a pause", PLACE_ANY},
    {"domain",  "limit",  "DOMAIN",    1, 1, command_domain_limit,   domain_limit_flags, "limit how many commands run, or begin in a time; without flags: list the limits", PLACE_ANY},
    {"reply",   "list",   "",          0, 0, command_reply_list,     reply_list_flags, "list the queues that pawl has created because a reply_to names them"},
    {"reply",   "read",   "QUEUE",     1, 1, command_reply_read,     reply_read_flags, "read replies, and hide them from other readers for a time"},
    {"reply",   "ack",    "QUEUE MSG_ID READ_COUNT", 3, 3, command_reply_ack, NULL, "acknowledge a reply that was read: delete it"},
    {"stats",   NULL,     "[DOMAIN]",  0, 1, command_stats,          stats_flags, "show numbers over time: what was sent and ended, how long commands waited and ran"},
    {"policy",  "show",   "DOMAIN",    1, 1, command_policy_show,    NULL,       "show the delays before retries in a domain", PLACE_ANY},
    {"policy",  "set",    "DOMAIN [DELAYS]", 1, 2, command_policy_set, policy_set_flags, "set the delays before retries: 10s,1m,5m; the last one applies to all further attempts", PLACE_ANY},
    {"policy",  "reset",  "DOMAIN",    1, 1, command_policy_reset,   policy_flags, "restore the default delays", PLACE_ANY},
    {"schedule", "create", "NAME DOMAIN TYPE [JSON|-]", 3, 4, command_schedule_create, schedule_create_flags, "send a command or start a process at given times"},
    {"schedule", "list",  "",          0, 0, command_schedule_list,  schedule_list_flags, "list schedules, newest first"},
    {"schedule", "show",  "NAME",      1, 1, command_schedule_show,  NULL,       "show one schedule"},
    {"schedule", "next",  "NAME",      1, 1, command_schedule_next,  schedule_next_flags, "show the next times of a schedule"},
    {"schedule", "run",   "NAME",      1, 1, command_schedule_run,   schedule_run_flags, "send the command of a schedule now and print its id"},
    {"schedule", "pause", "NAME",      1, 1, command_schedule_pause, schedule_decide_flags, "pause a schedule: it does not fire"},
    {"schedule", "resume", "NAME",     1, 1, command_schedule_resume, schedule_decide_flags, "resume a schedule; what it would have sent meanwhile is not sent"},
    {"schedule", "delete", "NAME",     1, 1, command_schedule_delete, schedule_decide_flags, "delete a schedule; what it has sent stays"},
    {"process", "define", "FILE|-",    1, 1, command_process_define, define_flags, "check and store the definition of a process; see pawl help definitions"},
    {"process", "definitions", "[TYPE]", 0, 1, command_process_definitions, definitions_flags, "list versions of definitions, newest first, or print one"},
    {"process", "start",  "TYPE [JSON|-]", 1, 2, command_process_start, process_start_flags, "start a process with this state; default: {}", PLACE_ANY},
    {"process", "show",   "ID",        1, 1, command_process_show,   show_flags, "show one process: its steps, what it waits for and until when", PLACE_ANY},
    {"process", "list",   "",          0, 0, command_process_list,   process_list_flags, "list processes, newest first", PLACE_ANY},
    {"process", "signal", "ID NAME [JSON|-]", 2, 3, command_process_signal, process_signal_flags, "send a response to a process; default: {}", PLACE_ANY},
    {"process", "retry",  "[ID]",      0, 1, command_process_retry,  process_retry_flags, "queue a process in troubleshooting again", PLACE_ANY},
    {"process", "cancel", "[ID]",      0, 1, command_process_cancel, process_cancel_flags, "cancel a process", PLACE_ANY},
    {"process", "complete", "[ID]",    0, 1, command_process_complete, process_complete_flags, "end a process in troubleshooting as COMPLETED", PLACE_ANY},
    {"process", "move",   "[ID]",      0, 1, command_process_move,   process_move_flags, "move a process to a newer version of its definition"},
    {"wallet",  "list",   "",          0, 0, command_wallet_list,    wallet_list_flags, "list wallets, newest first", PLACE_ANY},
    {"wallet",  "holds",  "",          0, 0, command_wallet_holds,   wallet_holds_flags, "list holds, newest first", PLACE_ANY},
    {"wallet",  "transactions", "",    0, 0, command_wallet_transactions, wallet_transactions_flags, "list operations that were decided, newest first", PLACE_ANY},
    {"wallet",  "create", "OWNER",     1, 1, command_wallet_create,  wallet_create_flags, "open a wallet", PLACE_ANY},
    {"wallet",  "topup",  "OWNER N",   2, 2, command_wallet_post,    wallet_flags, "credit a wallet from @system", PLACE_ANY},
    {"wallet",  "spend",  "OWNER N",   2, 2, command_wallet_post,    wallet_flags, "debit a wallet to @system", PLACE_ANY},
    {"wallet",  "transfer", "FROM TO N", 3, 3, command_wallet_post,    wallet_flags, "move money from one owner to another", PLACE_ANY},
    {"wallet",  "hold",   "OWNER N",   2, 2, command_wallet_post,    wallet_hold_flags, "reserve money, to be captured or voided", PLACE_ANY},
    {"wallet",  "capture", "ID",       1, 1, command_wallet_post,    wallet_capture_flags, "take what a hold has reserved", PLACE_ANY},
    {"wallet",  "void",   "ID",        1, 1, command_wallet_post,    wallet_void_flags, "release what a hold has reserved", PLACE_ANY},
    {"wallet",  "refund", "ID",        1, 1, command_wallet_post,    wallet_refund_flags, "return a transaction's money, whole or in part", PLACE_ANY},
    {"wallet",  "freeze", "OWNER",     1, 1, command_wallet_post,    wallet_flags, "block all movements of a wallet", PLACE_ANY},
    {"wallet",  "unfreeze", "OWNER",   1, 1, command_wallet_post,    wallet_flags, "allow movements of a wallet again", PLACE_ANY},
    {"wallet",  "floor",  "OWNER N",   2, 2, command_wallet_post,    wallet_flags, "set how far below zero the balance may go: -500, or 0", PLACE_ANY},
    {"wallet",  "batch",  "[FILE|-]",  0, 1, command_wallet_batch,   wallet_batch_flags, "post many, one JSON object per line: {\"kind\", \"txn_id\", ...} with the fields of docs/ledger.md"},
    {"wallet",  "balance", "OWNER",    1, 1, command_wallet_balance, wallet_balance_flags, "show the balance of a wallet", PLACE_ANY},
    {"wallet",  "entries", "OWNER",    1, 1, command_wallet_entries, wallet_entries_flags, "list the entries of a wallet, newest first", PLACE_ANY},
    {"wallet",  "statement", "OWNER",  1, 1, command_wallet_statement, wallet_statement_flags, "list all entries between two moments, with opening and closing balance"},
    {"wallet",  "show",   "ID",        1, 1, command_wallet_show,    NULL,       "show one transaction with its entries", PLACE_ANY},
    {"wallet",  "verify", "",          0, 0, command_wallet_verify,  wallet_verify_flags, "verify the ledger and name every inconsistent row"},
    {"wallet",  "events", "ASSET DOMAIN|off", 2, 2, command_wallet_events, NULL, "send a command for each transaction in an asset"},
    {"rating",  "leaderboard", "CHAT", 1, 1, command_rating_leaderboard, rating_flags, "show the leaderboard of a group"},
    {"rating",  "history", "CHAT PLAYER", 2, 2, command_rating_history, rating_flags, "list the matches of a player, @name or a number, newest first"},
    {"rating",  "verify", "[CHAT]",    0, 1, command_rating_verify,  NULL,       "compute all ratings again and name every row that differs"},
    {"migrate", NULL,     "",          0, 0, command_migrate,        NULL,       "bring the schema up to date", PLACE_HERE},
    {"migrate", "status", "",          0, 0, command_migrate_status, NULL,       "show which migrations are applied", PLACE_HERE},
    {"doctor",  NULL,     "",          0, 0, command_doctor,         doctor_flags, "run all checks and suggest remedies", PLACE_HERE},
    {"db",      "start",  "",          0, 0, command_db_start,       NULL,       "start the private PostgreSQL and leave it running", PLACE_HERE},
    {"db",      "stop",   "",          0, 0, command_db_stop,        stop_flags, "stop the private PostgreSQL", PLACE_HERE},
    {"db",      "status", "",          0, 0, command_db_status,      NULL,       "show the private PostgreSQL", PLACE_HERE},
    {"db",      "url",    "",          0, 0, command_db_url,         url_flags,  "print the URL of the database for applications", PLACE_HERE},
    {"dlq",     "list",   "",          0, 0, command_dlq_list,       list_flags, "list dead letters, newest first", PLACE_ANY},
    {"dlq",     "show",   "ID",        1, 1, command_dlq_show,       NULL,       "show one dead letter", PLACE_ANY},
    {"dlq",     "retry",  "ID",        1, 1, command_dlq_retry,      NULL,       "retry one dead letter now", PLACE_ANY},
    {"dlq",     "delete", "ID",        1, 1, command_dlq_delete,     NULL,       "delete one dead letter", PLACE_ANY},
    {"key",     "create", "NAME",      1, 1, command_key_create,     key_flags,  "create an API key and print its token, once"},
    {"key",     "list",   "",          0, 0, command_key_list,       NULL,       "list API keys"},
    {"key",     "revoke", "NAME|ID",   1, 1, command_key_revoke,     key_revoke_flags, "revoke an API key"},
    {"bench",   "commands", "",        0, 0, command_bench, bench_commands_flags, "measure sending and handling, in a temporary database", PLACE_HERE},
    {"bench",   "processes", "",       0, 0, command_bench, bench_processes_flags, "measure processes of three steps, in a temporary database", PLACE_HERE},
    {"bench",   "transfers", "",       0, 0, command_bench, bench_transfers_flags, "measure the ledger, in a temporary database", PLACE_HERE},
    {"bench",   "bot", "",             0, 0, command_bench, bench_bot_flags, "measure updates of the Telegram bot, in a temporary database", PLACE_HERE},
    {"bench",   "latency", "",         0, 0, command_bench, bench_latency_flags, "measure the time from send to start of handler", PLACE_HERE},
    {"health",  NULL,     "[URL]",     0, 1, command_health,         NULL,       "ask a daemon whether it can serve requests; exit status 0: it can", PLACE_HERE},
    {"completion", NULL,  "bash|zsh|fish", 1, 1, command_completion, NULL,       "print the script that completes commands and flags in a shell", PLACE_HERE},
    {"help",    NULL,     "[TOPIC]",   0, 2, command_help,           NULL,       "show help on a command, settings, metrics, errors, routes or definitions", PLACE_HERE},
    {"version", NULL,     "",          0, 0, command_version,        NULL,       "print the version", PLACE_HERE},
};
/* clang-format on */

const size_t cli_command_count = COUNT(cli_commands);
