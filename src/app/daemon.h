/*
 * daemon.h - `pawl serve`: what its handlers and jobs share, and its life from start to exit.
 *
 * Start (D12): app_open() to APP_MIGRATED, token, keys, alerts, jobs, and last the HTTP server: the first request is
 * accepted when everything behind it works.
 * Stop (D8): SIGTERM or SIGINT: no new connections, work in flight gets PAWL_DRAIN_TIMEOUT, the database
 * PAWL_CLOSE_TIMEOUT, then what is left is cut off; exit 0. A second signal exits at once. SIGHUP reads the settings
 * that can change while running.
 * Threads: the main thread waits for signals; handlers run on the server's, jobs on the monitor's.
 */
#ifndef APP_DAEMON_H
#define APP_DAEMON_H

#include <stdatomic.h>

#include "app/app.h"
#include "app/claims.h"
#include "app/job.h"
#include "app/key.h"
#include "base/sync.h"
#include "bus/backlog.h"
#include "bus/claim.h"
#include "bus/send.h"
#include "bus/waker.h"
#include "http/server.h"
#include "ops/alert.h"
#include "pg/listen.h"
#include "wallet/ledger.h"

/* Where retention goes on: see sql/bus/prune.sql. */
typedef struct {
    int64_t commands_after, audit_after;
    Mono    rest_until;
} Prune;

typedef struct Daemon {
    App        *app;
    KeyCache   *keys;
    Alerts     *alerts;
    Jobs       *jobs;
    Listen     *listen;
    Server     *server; /* NULL without role api */
    Sender     *sender;
    Ledger     *ledger;
    Waker      *waker;
    Claims     *claims;
    BringBack   bring_back; /* the monitor's own */
    Backlog     backlog;    /* the monitor's own */
    Prune       prune;      /* the monitor's own */
    const char *openapi;
    atomic_bool stopping;
    Mutex       mutex;                             /* guards webhook */
    char        webhook[SETTINGS_WEBHOOK_MAX + 1]; /* "" : none */
} Daemon;

/* Runs until a signal ends it. */
must_check ErrorCode daemon_run(const SettingsGiven *given, Error *reterr);

#endif
