/*
 * section_commands.c - how many commands a second, and what they weigh: in batches, one at a time, beside many delayed ones,
 * by several processes.
 */
#include "bench/bench.h"
#include "bench/load.h"
#include "bench/measure.h"
#include "bench/size.h"
#include "bench/worker_process.h"
#include "bench/worker_thread.h"
#include "bus/handler.h"
#include "pg/tx.h"
#include "sql.h"

#define CALL_MS  60000
#define LATER_MS (30LL * 24 * 3600 * 1000)

#define SPAN_COLUMNS(X, T) X(T, I64, completed, us)
DB_ROW(Span, SPAN_COLUMNS);
DB_SHAPE(span, Span, SPAN_COLUMNS);

static ErrorCode commands_send(Bench *bench, BenchDatabase *database, int64_t *ret_us, Error *reterr)
{
    bench_print(bench, "sending");
    return load_send(bench, &(Load){.database = database, .count = bench->options.count}, ret_us, reterr);
}

/* Claim, complete and settle as many as were sent, with one worker in this process. */
static ErrorCode commands_handle(Bench *bench, const BenchDatabase *database, int64_t *ret_us, Error *reterr)
{
    Mono         start = clock_mono();
    WorkerThread worker_thread;

    bench_print(bench, "handling");
    worker_thread_start(&worker_thread, bench, database, &handler_noop, /* threads= */ 0);
    worker_thread_wait(&worker_thread, bench->options.count);
    *ret_us = mono_us_between(start, clock_mono());
    return worker_thread_end(&worker_thread, OK, reterr);
}

/* ---- send and handle ---- */

static ErrorCode flood_round(Bench *bench, BenchDatabase *database, Error *reterr)
{
    int64_t count = bench->options.count, us;
    Size    before, between, after;

    TRY(size_measure(bench, database, "pawl", &before, reterr));
    TRY(commands_send(bench, database, &us, reterr));
    report_run(&bench->report, "send", "commands", UNIT_RATE, per_second(count, us));
    TRY(size_measure(bench, database, "pawl", &between, reterr));
    TRY(commands_handle(bench, database, &us, reterr));
    report_run(&bench->report, "handle", "commands", UNIT_RATE, per_second(count, us));
    TRY(size_measure(bench, database, "pawl", &after, reterr));
    size_report(bench, "send", &before, &between, count);
    size_report(bench, "handle", &between, &after, count);
    return OK;
}

ErrorCode section_flood(Bench *bench, int64_t value, Error *reterr)
{
    BenchDatabase *database;

    (void)value;
    TRY(bench_database(bench, &database, reterr));
    for (int64_t round = 0; round < bench->options.rounds; round++)
        TRY(flood_round(bench, database, reterr));
    return OK;
}

/* ---- one at a time ---- */

ErrorCode section_single(Bench *bench, int64_t value, Error *reterr)
{
    BenchDatabase *database;

    (void)value;
    TRY(bench_database(bench, &database, reterr));
    for (int64_t round = 0; round < bench->options.rounds; round++) {
        Load    load = {.database = database, .count = bench->options.count, .single = true};
        int64_t us;

        bench_print(bench, "sending one at a time");
        TRY(load_send(bench, &load, &us, reterr));
        report_run(&bench->report, "single", "commands", UNIT_RATE, per_second(load.count, us));
    }
    return OK;
}

/* ---- beside many delayed ones: two databases, because a delayed command of any domain would be in the way of all ---- */

static ErrorCode delayed_measure(Bench *bench, int which, int64_t value, double *ret_rate, Error *reterr)
{
    BenchDatabase *database = &bench->databases[which];
    int64_t        us;

    (void)value;
    TRY(commands_send(bench, database, &us, reterr));
    TRY(commands_handle(bench, database, &us, reterr));
    *ret_rate = per_second(bench->options.count, us);
    return OK;
}

ErrorCode section_delayed(Bench *bench, int64_t value, Error *reterr)
{
    Alternation alternation = {
        "delayed", {"handle, none delayed", "handle, many delayed"},
         delayed_measure, value
    };
    BenchDatabase *databases[2];
    int64_t        us;

    for (int i = 0; i < 2; i++)
        TRY(bench_database(bench, &databases[i], reterr));
    bench_print(bench, "sending what is delayed");
    TRY(load_send(bench, &(Load){.database = databases[1], .count = value, .delay_ms = LATER_MS}, &us, reterr));
    bench_print(bench, "vacuum and checkpoint");
    for (int i = 0; i < 2; i++)
        TRY(database_settle(databases[i], reterr));
    return alternate_run(bench, &alternation, reterr);
}

/* ---- by several processes; timed by the rows they leave, so that starting them does not count ---- */

static ErrorCode processes_measure(Bench *bench, int which, int64_t value, double *ret_rate, Error *reterr)
{
    TxOptions      options  = {.name = "bench span", .deadline = deadline_in_ms(CALL_MS), .read_only = true};
    BenchDatabase *database = &bench->databases[0];
    int64_t        newest;
    Span           span;
    int64_t        us;

    options.arena = bench->arena;
    TRY(db_call(database->pool, &options, sql_bench_newest, DB_NONE, &db_i64_shape, &newest, reterr));
    TRY(commands_send(bench, database, &us, reterr));
    bench_print(bench, which ? "handling by several processes" : "handling by one process");
    TRY(worker_processes_run(bench, database, which ? (int)value : 1, reterr));
    options.deadline = deadline_in_ms(CALL_MS);
    TRY(db_call(database->pool, &options, sql_bench_span, DB_ARGS(db_i64(newest)), &span_shape, &span, reterr));
    if (span.completed != bench->options.count)
        return fail(reterr, ERR_INTERNAL, "%lld of %lld commands were completed", (long long)span.completed,
                    (long long)bench->options.count);
    atomic_fetch_add(&bench->done, span.completed);
    *ret_rate = per_second(span.completed, span.us);
    return OK;
}

ErrorCode section_processes(Bench *bench, int64_t value, Error *reterr)
{
    Alternation alternation = {
        "processes", {"handle, one process", NULL},
         processes_measure, value
    };
    BenchDatabase *database;

    alternation.names[1] = arena_print(bench->arena, "handle, %d processes together", (int)value);
    TRY(bench_database(bench, &database, reterr));
    return alternate_run(bench, &alternation, reterr);
}
