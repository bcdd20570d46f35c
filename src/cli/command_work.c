/*
 * command_work.c - a worker for one domain: runs a program, an SQL function, or nothing at all for each command.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bus/command.h"
#include "bus/shell.h"
#include "bus/worker_set.h"
#include "cli/command.h"
#include "cli/progress.h"
#include "pg/listen.h"

#define WATCH_MS       200
#define QUIET_MS       2000
#define QUIET_AGAIN_MS 60000
#define COUNT_MS       1000

typedef struct {
    WorkerSet *workers;
    Progress   progress;

    /* --drain without --json: what it waits for is printed once it has been idle for a while, then every minute. */
    Pool              *pool; /* NULL: say nothing */
    const char        *domain;
    const char *const *types; /* NULL: all */
    int64_t            claimed;
    Mono               quiet_at; /* when it will have been idle for long enough */
} Watch;

/* ---- signals and the live line, on the main thread ---- */

static void line_show(Watch *watch)
{
    WorkerCounts counts;
    char         more[96];

    worker_set_counts(watch->workers, &counts);
    snprintf(more, sizeof more, ", %lld failed, %lld retried, %d in flight",
             (long long)(counts.failed + counts.rejected), (long long)counts.retried, counts.running + counts.waiting);
    progress_show_more(&watch->progress, counts.completed, "done", more);
}

static void wait_explain(Watch *watch)
{
    WorkerCounts counts;
    Mono         now = clock_mono();
    WorkLeft     left;

    worker_set_counts(watch->workers, &counts);
    if (counts.claimed != watch->claimed || counts.running + counts.waiting > 0) {
        watch->claimed  = counts.claimed;
        watch->quiet_at = mono_plus_ms(now, QUIET_MS);
        return;
    }
    if (!watch->pool || mono_before(now, watch->quiet_at))
        return;
    watch->quiet_at = mono_plus_ms(now, QUIET_AGAIN_MS);
    if (work_left(watch->pool, deadline_in_ms(COUNT_MS), watch->domain, watch->types, &left, NULL) != OK ||
        left.queued + left.delayed + left.parked + left.leased == 0)
        return;
    progress_end(&watch->progress);
    fprintf(stderr,
            "waiting for commands: %lld queued, %lld delayed, %lld behind others with their order key, %lld held by "
            "other workers; see pawl command list --domain %s\n",
            (long long)left.queued, (long long)left.delayed, (long long)left.parked, (long long)left.leased,
            watch->domain);
}

static sigset_t stop_signals(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    return set;
}

/* Until the worker has ended. */
static void watch_run(Watch *watch)
{
    struct timespec pause    = {.tv_nsec = WATCH_MS * 1000000L};
    sigset_t        set      = stop_signals();
    bool            stopping = false;

    progress_begin(&watch->progress);
    while (!worker_set_wait(watch->workers, deadline_in_ms(0))) {
        int signal = sigtimedwait(&set, NULL, &pause);

        line_show(watch);
        wait_explain(watch);
        if (signal > 0 &&
            stopping) { /* second signal: exit now; commands in progress are requeued when their leases expire */
            shell_kill_all();
            _exit(EXIT_FAILURE);
        }
        if (signal > 0) {
            stopping = true;
            worker_set_stop(watch->workers, deadline_in_ms(WORKER_STOP_MS));
        }
    }
    line_show(watch);
    progress_end(&watch->progress);
}

/* ---- what to do with each command ---- */

/* 0: not given. */
static ErrorCode time_read(const Call *call, const char *flag, int64_t *ret_ms, Error *reterr)
{
    TRY(call_duration(call, flag, 0, ret_ms, reterr));
    if (call_flag(call, flag) && (*ret_ms < WORKER_LEASE_MS_MIN || *ret_ms > WORKER_TIME_MS_MAX))
        return fail(reterr, ERR_USAGE, "%s must be a duration from 100ms to 1d, got \"%.60s\"", flag,
                    call_flag(call, flag));
    return OK;
}

static ErrorCode row_read(const Call *call, WorkerRow *ret_row, Error *reterr)
{
    int64_t threads, batch, lease_ms, timeout_ms;

    TRY(call_number("-j", call_flag(call, "-j"), 1, WORKER_CONCURRENCY_MAX, 0, &threads, reterr));
    TRY(call_number("--batch", call_flag(call, "--batch"), 1, CLAIM_MAX, 0, &batch, reterr));
    TRY(time_read(call, "--lease", &lease_ms, reterr));
    TRY(time_read(call, "--timeout", &timeout_ms, reterr));
    *ret_row = (WorkerRow){.domain      = call->arguments[0],
                           .concurrency = (int)threads,
                           .batch       = (int)batch,
                           .lease_ms    = (int)lease_ms,
                           .timeout_ms  = (int)timeout_ms,
                           .drain       = call_flag(call, "--drain") != NULL,
                           .exec        = call_flag(call, "--exec"),
                           .sql         = call_flag(call, "--sql"),
                           .noop        = call_flag(call, "--noop") != NULL,
                           .alone       = call_flag(call, "--alone") != NULL};
    if (call_flag(call, "--type"))
        TRY(worker_types_read("--type", call_flag(call, "--type"), call->arena, &ret_row->types, reterr));
    if ((ret_row->exec != NULL) + (ret_row->sql != NULL) + ret_row->noop != 1)
        return fail(reterr, ERR_USAGE, "give one of --exec PROGRAM, --sql FUNCTION and --noop");
    if (ret_row->alone && !ret_row->sql)
        return fail(reterr, ERR_USAGE, "--alone is for --sql FUNCTION: other handlers share no transaction");
    return OK;
}

static void counts_print(const Call *call, WorkerSet *workers)
{
    WorkerCounts counts;

    worker_set_counts(workers, &counts);
    printf(
        call->json
            ? "{\"claimed\":%lld,\"completed\":%lld,\"retried\":%lld,\"failed\":%lld,\"rejected\":%lld,\"lost\":%lld,"
            : "%lld claimed: %lld completed, %lld retried, %lld in troubleshooting, %lld rejected, %lld lost",
        (long long)counts.claimed, (long long)counts.completed, (long long)counts.retried, (long long)counts.failed,
        (long long)counts.rejected, (long long)counts.lost);
    if (call->json)
        printf("\"released\":%lld,\"canceled\":%lld}", (long long)counts.released, (long long)counts.canceled);
    if (!call->json && counts.canceled > 0)
        printf(", %lld canceled", (long long)counts.canceled);
    if (!call->json && counts.released > 0)
        printf(", %lld released", (long long)counts.released);
    printf("\n");
}

static ErrorCode work(Call *call, const WorkerRow *row, Error *reterr)
{
    /* freed after the listener that wakes it */
    scoped(worker_set_free) WorkerSet *workers = worker_set_new(call->pool, call->app->handler_pool);
    scoped(listen_free) Listen        *listen  = NULL;
    Watch                              watch   = {.workers  = workers,
                                                  .domain   = row->domain,
                                                  .types    = row->types,
                                                  .quiet_at = mono_plus_ms(clock_mono(), QUIET_MS)};

    TRY(worker_set_add(workers, row, deadline_in_ms(APP_COMMAND_MS), reterr));
    listen     = listen_new(call->app->settings.listen_database_url, call->pool);
    watch.pool = row->drain && !call->json ? call->pool : NULL;
    TRY(worker_set_start(workers, &(WorkerSetStart){.listen = listen}, reterr));
    watch_run(&watch);
    TRY(worker_set_result(workers, reterr));
    counts_print(call, workers);
    return OK;
}

ErrorCode command_work(Call *call, Error *reterr)
{
    WorkerRow row;
    sigset_t  set = stop_signals();

    TRY(row_read(call, &row, reterr));
    pthread_sigmask(SIG_BLOCK, &set, NULL); /* before the first thread: only watch_run() waits for them */
    signal(SIGPIPE, SIG_IGN);
    call->given.is_daemon = true;
    call->given.handlers  = row.concurrency ? row.concurrency : WORKER_CONCURRENCY_DEFAULT;
    TRY(call_open(call, APP_SCHEMA, reterr));
    domain_note(call, "", row.domain);
    return work(call, &row, reterr);
}
