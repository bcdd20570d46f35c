/*
 * command_work.c - a worker for one domain: runs a program, an SQL function, or nothing at all for each command.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/sync.h"
#include "base/uuid.h"
#include "bus/command.h"
#include "bus/handler.h"
#include "bus/worker.h"
#include "cli/command.h"
#include "cli/progress.h"
#include "pg/listen.h"

#define STOP_MS        30000
#define WATCH_MS       200
#define QUIET_MS       2000
#define QUIET_AGAIN_MS 60000
#define COUNT_MS       1000
#define LEASE_MS_MIN   100
#define LEASE_MS_MAX   86400000

typedef struct {
    Worker  *worker;
    Mutex    mutex; /* guards ended */
    Cond     wake;
    bool     ended;
    Progress progress;

    /* --drain without --json: what it waits for is said once it has had nothing to do for a while, then now and then. */
    Pool       *pool; /* NULL: say nothing */
    const char *domain, *type;
    int64_t     claimed;
    Mono        quiet_at; /* when it will have been idle for long enough */
} Watch;

/* ---- signals and the live line, on a thread of its own, because the main thread works ---- */

static void line_show(Watch *watch)
{
    WorkerCounts counts;
    char         more[96];

    worker_counts(watch->worker, &counts);
    snprintf(more, sizeof more, ", %lld failed, %lld retried, %d in flight",
             (long long)(counts.failed + counts.rejected), (long long)counts.retried, counts.running + counts.waiting);
    progress_show_more(&watch->progress, counts.completed, "done", more);
}

/* How many commands of the domain have this status; 0 when that cannot be read now. */
static int64_t count_of(const Watch *watch, const char *status)
{
    CommandFilter filter = {.domain = watch->domain, .status = status, .type = watch->type};
    int64_t       count;

    return command_count(watch->pool, deadline_in_ms(COUNT_MS), &filter, &count, NULL) == OK ? count : 0;
}

static void wait_explain(Watch *watch)
{
    WorkerCounts counts;
    Mono         now = clock_mono();
    int64_t      delayed, leased;

    worker_counts(watch->worker, &counts);
    if (counts.claimed != watch->claimed || counts.running + counts.waiting > 0) {
        watch->claimed  = counts.claimed;
        watch->quiet_at = mono_plus_ms(now, QUIET_MS);
        return;
    }
    if (!watch->pool || mono_before(now, watch->quiet_at))
        return;
    watch->quiet_at = mono_plus_ms(now, QUIET_AGAIN_MS);
    delayed         = count_of(watch, "PENDING");
    leased          = count_of(watch, "IN_PROGRESS");
    if (delayed + leased > 0)
        fprintf(
            stderr,
            "%swaiting for %lld delayed and %lld commands that other workers hold: see pawl command list --domain %s\n",
            watch->progress.shown ? "\r\033[K" : "", (long long)delayed, (long long)leased, watch->domain);
}

static void *watch_run(void *context)
{
    Watch          *watch = context;
    struct timespec pause = {.tv_nsec = WATCH_MS * 1000000L};
    sigset_t        set;
    bool            stopping = false;

    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    for (;;) {
        int signal = sigtimedwait(&set, NULL, &pause);

        line_show(watch);
        mutex_lock(&watch->mutex);
        bool ended = watch->ended;
        mutex_unlock(&watch->mutex);
        if (ended)
            return NULL;
        wait_explain(watch);
        if (signal > 0 && stopping) /* twice: at once; leases bring back what was begun */
            _exit(EXIT_FAILURE);
        if (signal > 0) {
            stopping = true;
            worker_stop(watch->worker, deadline_in_ms(STOP_MS));
        }
    }
}

static void watch_end(Watch *watch, pthread_t thread)
{
    mutex_lock(&watch->mutex);
    watch->ended = true;
    mutex_unlock(&watch->mutex);
    thread_join(thread);
    progress_end(&watch->progress);
}

/* ---- what to do with each command ---- */

/* Exactly one of --exec, --sql, --noop. */
static ErrorCode handler_make(Call *call, App *app, Handler **ret_handler, Error *reterr)
{
    const char *exec = call_flag(call, "--exec"), *sql = call_flag(call, "--sql"), *noop = call_flag(call, "--noop");

    if ((exec != NULL) + (sql != NULL) + (noop != NULL) != 1)
        return fail(reterr, ERR_USAGE, "give one of --exec PROGRAM, --sql FUNCTION and --noop");
    if (sql)
        return handler_sql_new(app->pool, deadline_in_ms(APP_COMMAND_MS), sql, ret_handler, reterr);
    if (exec)
        TRY(handler_exec_check(exec, reterr));
    *ret_handler = exec ? handler_exec_new(exec) : &handler_noop;
    return OK;
}

static void handler_end(const Call *call, Handler *handler)
{
    if (call_flag(call, "--exec"))
        handler_exec_free(handler);
    if (call_flag(call, "--sql"))
        handler_sql_free(handler);
}

/* 0: not given. */
static ErrorCode time_read(const Call *call, const char *flag, int64_t *ret_ms, Error *reterr)
{
    TRY(call_duration(call, flag, 0, ret_ms, reterr));
    if (call_flag(call, flag) && (*ret_ms < LEASE_MS_MIN || *ret_ms > LEASE_MS_MAX))
        return fail(reterr, ERR_USAGE, "%s must be a duration from 100ms to 1d, got \"%.60s\"", flag,
                    call_flag(call, flag));
    return OK;
}

static ErrorCode options_read(const Call *call, WorkerOptions *ret_options, Error *reterr)
{
    int64_t threads, batch, lease_ms, timeout_ms;

    TRY(call_number("-j", call_flag(call, "-j"), 1, WORKER_CONCURRENCY_MAX, 0, &threads, reterr));
    TRY(call_number("--batch", call_flag(call, "--batch"), 1, CLAIM_MAX, 0, &batch, reterr));
    TRY(time_read(call, "--lease", &lease_ms, reterr));
    TRY(time_read(call, "--timeout", &timeout_ms, reterr));
    *ret_options = (WorkerOptions){.domain      = call->arguments[0],
                                   .concurrency = (int)threads,
                                   .batch       = (int)batch,
                                   .lease_ms    = (int)lease_ms,
                                   .timeout_ms  = (int)timeout_ms,
                                   .drain       = call_flag(call, "--drain") != NULL};
    return OK;
}

static void counts_print(const Call *call, Worker *worker)
{
    WorkerCounts counts;

    worker_counts(worker, &counts);
    printf(
        call->json
            ? "{\"claimed\":%lld,\"completed\":%lld,\"retried\":%lld,\"failed\":%lld,\"rejected\":%lld,\"lost\":%lld,"
            : "%lld claimed: %lld completed, %lld retried, %lld in troubleshooting, %lld rejected, %lld lost",
        (long long)counts.claimed, (long long)counts.completed, (long long)counts.retried, (long long)counts.failed,
        (long long)counts.rejected, (long long)counts.lost);
    if (call->json)
        printf("\"released\":%lld}", (long long)counts.released);
    else if (counts.released > 0)
        printf(", %lld released", (long long)counts.released);
    printf("\n");
}

static ErrorCode work(Call *call, App *app, WorkerOptions *options, Error *reterr)
{
    scoped(worker_free) Worker *worker = worker_new(options); /* freed after the listener that wakes it */
    scoped(listen_free) Listen *listen = listen_new(app->settings.listen_database_url, app->pool);
    Watch                       watch  = {.worker   = worker,
                                          .domain   = options->domain,
                                          .type     = call_flag(call, "--type"),
                                          .quiet_at = mono_plus_ms(clock_mono(), QUIET_MS)};
    pthread_t                   thread;
    ErrorCode                   code;

    worker_listen(worker, listen);
    watch.pool = options->drain && !call->json ? app->pool : NULL;
    mutex_init(&watch.mutex);
    progress_begin(&watch.progress);
    thread = thread_start("watch", watch_run, &watch);
    code   = worker_run(worker, reterr);
    watch_end(&watch, thread);
    mutex_done(&watch.mutex);
    if (code == OK)
        counts_print(call, worker);
    return code;
}

ErrorCode command_work(Call *call, Error *reterr)
{
    scoped(app_close) App *app     = NULL;
    Handler               *handler = NULL;
    WorkerOptions          options;
    char                   host[64] = "", id[UUID_TEXT_SIZE], name[160];
    const char            *types[]  = {call_flag(call, "--type"), NULL};
    sigset_t               set;
    ErrorCode              code;

    TRY(options_read(call, &options, reterr));
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    pthread_sigmask(SIG_BLOCK, &set, NULL); /* before the first thread: only the watch waits for them */
    signal(SIGPIPE, SIG_IGN);
    call->given.is_daemon = true;
    call->given.handlers  = options.concurrency ? options.concurrency : WORKER_CONCURRENCY_DEFAULT;
    TRY(app_open(&call->given, APP_SCHEMA, &app, reterr));
    TRY(handler_make(call, app, &handler, reterr));
    (void)gethostname(host, sizeof host - 1);
    uuid_new(id);
    snprintf(name, sizeof name, "%s:%d:%.8s", host, (int)getpid(),
             id + 28); /* unique for each start, readable for people */
    options.pool    = app->pool;
    options.name    = name;
    options.handler = handler;
    options.types   = types[0] ? types : NULL;
    code            = work(call, app, &options, reterr);
    handler_end(call, handler);
    return code;
}
