/*
 * daemon.h - `pawl serve`: what its handlers and periodic tasks share, and its life from start to exit.
 *
 * Start (D12): settings, the HTTP address, app_reach() to APP_MIGRATED, the login's rights, token, keys, alerts, tasks, workers checked, the HTTP server, and last
 * the workers claim: the first request is accepted when everything behind it works, and nothing is claimed by a pod that cannot start.
 * Stop (D8): SIGTERM or SIGINT: no new connections, work in flight gets PAWL_DRAIN_TIMEOUT, the database
 * PAWL_CLOSE_TIMEOUT, then what is left is cut off; exit 0. A second signal exits immediately. SIGHUP reads the settings
 * that can change while running. A service manager is notified of all three (app/notify).
 * Threads: the main thread waits for signals; requests run on the server's, periodic tasks, webhooks and workers on their own.
 */
#ifndef APP_DAEMON_H
#define APP_DAEMON_H

#include "api/api.h"
#include "app/app.h"
#include "app/notify.h"
#include "app/task.h"
#include "base/sync.h"
#include "base/uuid.h"
#include "bot/bot.h"
#include "bus/backlog.h"
#include "bus/maintain.h"
#include "bus/worker_set.h"
#include "client/client.h"
#include "http/server.h"
#include "ops/webhook_queue.h"
#include "pg/listen.h"
#include "process/workers.h"

/* Where retention goes on: see sql/bus/prune.sql. */
typedef struct {
    int64_t after;
} Prune;

/* What a task saw go through this process when it asked the database last, and until when it need not ask again. */
typedef struct {
    int64_t activity;
    Mono    until;
} Idle;

typedef struct Daemon {
    App            *app;
    Api             api; /* what the HTTP handlers use */
    Tasks          *tasks;
    Client         *client; /* for requests to other servers */
    WebhookQueue   *webhooks;
    Listen         *listen;
    const char     *token, *token_file; /* the admin's; file NULL: the settings gave it */
    int             bound_fd;           /* of the HTTP address until the server has it; 0: none */
    Server         *server;             /* NULL without role api */
    WorkerSet      *workers;            /* NULL: none, by settings or by role */
    ProcessWorkers *processes;          /* NULL: none, by role */
    Client         *step_client;        /* of http steps */
    BotNotices     *notices;            /* NULL: no bot, by settings */
    Bot            *bot;                /* NULL: none, by settings or by role */
    Notify          notify;             /* the service manager */
    /* Each belongs to one periodic task. */
    Requeue         requeue;
    int64_t         bus_activity;
    Backlog         backlog;
    Prune           prune;
    Maintain        maintain;
    Idle            bus_idle, expire_idle, seal_idle;
    int64_t         expire_low;     /* no open hold that was seen expires before, in microseconds; 0: not known */
    Mono            expire_full_at; /* when to start at the first hold again */
    bool            holds_shared;
    _Atomic int64_t schedules_at;           /* a Mono: when a schedule is due, as far as this pod knows; 0: ask */
    _Atomic int     schedules_lag_ms;       /* how much later this pod asks, because another one fires them */
    char            holder[UUID_TEXT_SIZE]; /* of the leases on tasks: this process */
    Mutex           mutex;                  /* guards webhook */
    char            webhook[SETTINGS_WEBHOOK_MAX + 1]; /* "" : none */
} Daemon;

/* Runs until a signal ends it. */
must_check ErrorCode daemon_run(const SettingsGiven *given, Error *reterr);

#endif
