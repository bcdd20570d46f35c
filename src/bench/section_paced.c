/*
 * section_paced.c - a load at a fixed rate: how soon handlers start, and whether that lasts while another connection
 * holds a transaction open.
 */
#include "bench/bench.h"
#include "bench/database.h"
#include "bench/load.h"
#include "bench/probe.h"
#include "bench/worker_thread.h"

#define WARM_COUNT 50
/* Of the paced sections: enough that a pause of the machine is caught up with, because what is asked is what lasts. */
#define THREADS   64
#define CALL_MS   30000
#define WINDOW_MS 10000LL
#define WINDOWS   6 /* at least so many, also of a short load */

/* What "flat" allows: half of the backlog more and a tenth of a second's worth, half of the delay more and 5 ms, and
 * 5 % less than is offered. The claims of the probe are shown and not judged: reading below the cursor costs an idle
 * worker more while a transaction is held, and is rate-limited for that reason. */
#define BACKLOG_SHARE 10
#define GROWTH        1.5
#define SLACK_MS      5
#define RATE_LEAST    0.95

typedef struct {
    Bench         *bench;
    const char    *section;
    BenchDatabase *database;
    Waker         *waker;
    WorkerThread   worker_thread;
    Stopwatch      stopwatch;
    Probe          probe;
    int            threads;   /* of the worker; 0: its default */
    int64_t        warm;      /* commands of the warm-up */
    int64_t        last_done; /* at the end of the last window */
    int64_t        last_us;
} Course;

/* ---- windows ---- */

static int64_t course_done(Course *course)
{
    WorkerCounts counts;

    worker_counts(course->worker_thread.worker, &counts);
    return counts.completed - course->warm + atomic_load(&course->probe.settled);
}

static void course_window(PacedLoad *paced_load, int64_t elapsed_us)
{
    Course   *course  = paced_load->context;
    int64_t   done    = course_done(course);
    double    seconds = (double)(elapsed_us - course->last_us) / 1e6;
    Histogram starts, claims;

    stopwatch_lap(&course->stopwatch, &starts);
    probe_lap(&course->probe, &claims);
    report_window(&course->bench->report, &(Window){.section      = course->section,
                                                    .end_s        = (double)elapsed_us / 1e6,
                                                    .offered      = (double)paced_load->rate,
                                                    .done         = (double)(done - course->last_done) / seconds,
                                                    .backlog      = paced_load->sent - done,
                                                    .start_p50_ms = histogram_ms(&starts, 50),
                                                    .start_p99_ms = histogram_ms(&starts, 99),
                                                    .claim_p50_ms = histogram_ms(&claims, 50),
                                                    .claim_p99_ms = histogram_ms(&claims, 99)});
    course->last_done = done;
    course->last_us   = elapsed_us;
}

/* ---- flat? The first third of the windows against the last ---- */

typedef struct {
    double done, backlog, start_ms, claim_ms;
} Third;

static Third third_of(const Window *windows, int count)
{
    Third third = {0};

    for (int i = 0; i < count; i++) {
        third.done += windows[i].done / count;
        third.backlog += (double)windows[i].backlog / count;
        third.start_ms += windows[i].start_p50_ms / count;
        third.claim_ms += windows[i].claim_p50_ms / count;
    }
    return third;
}

static bool thirds_are_flat(const Third *first, const Third *last, double rate)
{
    return last->done >= rate * RATE_LEAST && last->backlog <= first->backlog * GROWTH + rate / BACKLOG_SHARE &&
           last->start_ms <= first->start_ms * GROWTH + SLACK_MS;
}

static void course_judge(const Course *course, int first_window)
{
    Report       *report  = &course->bench->report;
    const Window *windows = report->windows + first_window;
    int           count = report->window_count - first_window, third = count / 3;
    Third         first, last;

    if (third == 0)
        return;
    first = third_of(windows, third);
    last  = third_of(windows + count - third, third);
    report_judge(report, course->section, thirds_are_flat(&first, &last, windows->offered),
                 arena_print(course->bench->arena,
                             "from the first third to the last: done %.0f to %.0f/s, backlog %.0f to %.0f, "
                             "start p50 %.2f to %.2f ms, claim p50 %.2f to %.2f ms",
                             first.done, last.done, first.backlog, last.backlog, first.start_ms, last.start_ms,
                             first.claim_ms, last.claim_ms));
}

/* ---- the course ---- */

/* Connections, plans and caches; one at a time, so that every statement has been run in its usual form. */
static ErrorCode course_warm(Course *course, Error *reterr)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);

    for (int i = 0; i < WARM_COUNT; i++) {
        SendItem  item = load_item("0");
        SendItem *list = &item;

        TRY(send_many(course->database->pool, deadline_in_ms(CALL_MS), arena, &list, 1, reterr));
        waker_notify_sent(course->waker, &item);
        course->warm++;
        worker_thread_wait(&course->worker_thread, course->warm);
        TRY(bench_continue(course->bench, reterr));
    }
    stopwatch_reset(&course->stopwatch);
    return OK;
}

/* The load, with a probe beside it where windows are asked for. */
static ErrorCode course_run(Course *course, PacedLoad *paced_load, Error *reterr)
{
    bool      probed = paced_load->window_ms > 0;
    ErrorCode code;

    if (probed)
        probe_start(&course->probe, course->database);
    code = paced_load_run(paced_load, reterr);
    return probed ? probe_end(&course->probe, code, reterr) : code;
}

/* With the worker running: warm up, run, let it finish. */
static ErrorCode course_measure(Course *course, PacedLoad *paced_load, Error *reterr)
{
    TRY(worker_thread_listen(&course->worker_thread, course->database, reterr));
    bench_print(course->bench, "warming up");
    TRY(course_warm(course, reterr));
    bench_print(course->bench, course->section);
    TRY(course_run(course, paced_load, reterr));
    worker_thread_wait(&course->worker_thread, course->warm + paced_load->sent - atomic_load(&course->probe.settled));
    return OK;
}

static ErrorCode course_go(Course *course, PacedLoad *paced_load, Error *reterr)
{
    scoped(waker_free) Waker *waker = waker_new(course->database->pool);
    ErrorCode                 code;

    course->waker = paced_load->waker = waker;
    paced_load->context               = course;
    stopwatch_init(&course->stopwatch);
    worker_thread_start(&course->worker_thread, course->bench, course->database, &course->stopwatch.base,
                        course->threads);
    code = course_measure(course, paced_load, reterr);
    code = worker_thread_end(&course->worker_thread, code, reterr);
    stopwatch_done(&course->stopwatch);
    if (code == OK)
        report_times(&course->bench->report, course->section, "send to start of handler", &course->stopwatch.all);
    return code;
}

/* ---- the sections ---- */

static ErrorCode paced_run(Bench *bench, const char *section, HoldKind kind, int64_t ms, Error *reterr)
{
    scoped(conn_close) Conn *hold   = NULL;
    Course                   course = {.bench = bench, .section = section, .threads = THREADS};
    int                      first  = bench->report.window_count;

    TRY(bench_database(bench, &course.database, reterr));
    TRY(hold_begin(course.database, kind, &hold, reterr));
    PacedLoad paced_load = {.bench     = bench,
                            .database  = course.database,
                            .rate      = bench->options.rate,
                            .ms        = ms,
                            .window_ms = ms < WINDOWS * WINDOW_MS ? ms / WINDOWS : WINDOW_MS,
                            .window    = course_window};
    TRY(course_go(&course, &paced_load, reterr));
    TRY(hold_check(hold, reterr));
    course_judge(&course, first);
    return OK;
}

ErrorCode section_paced(Bench *bench, int64_t value, Error *reterr)
{
    return paced_run(bench, "paced", HOLD_NOTHING, value, reterr);
}

ErrorCode section_hold(Bench *bench, int64_t value, Error *reterr)
{
    return paced_run(bench, "hold", HOLD_SNAPSHOT, value, reterr);
}

ErrorCode section_hold_xid(Bench *bench, int64_t value, Error *reterr)
{
    return paced_run(bench, "hold-xid", HOLD_XID, value, reterr);
}

ErrorCode section_latency(Bench *bench, int64_t value, Error *reterr)
{
    Course course = {.bench = bench, .section = "latency"};

    (void)value;
    TRY(bench_database(bench, &course.database, reterr));
    PacedLoad paced_load = {.bench    = bench,
                            .database = course.database,
                            .rate     = bench->options.rate,
                            .ms       = bench->options.seconds * 1000};
    return course_go(&course, &paced_load, reterr);
}
