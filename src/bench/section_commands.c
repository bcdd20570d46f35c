/*
 * section_commands.c - how many commands a second, and what they weigh: in batches, one at a time, beside many delayed ones,
 * by several processes.
 */
#include "bench/bench.h"
#include "bench/crew.h"
#include "bench/fleet.h"
#include "bench/load.h"
#include "bench/turns.h"
#include "bench/weight.h"
#include "bus/handler.h"
#include "pg/tx.h"
#include "sql.h"

#define CALL_MS  60000
#define LATER_MS (30LL * 24 * 3600 * 1000)

#define SPAN_COLUMNS(X, T)           \
    X(T, int64_t, DB_I64, completed) \
    X(T, int64_t, DB_I64, us)
typedef struct {
    SPAN_COLUMNS(DB_FIELD, Span)
} Span;
DB_SHAPE(span, Span, SPAN_COLUMNS);

#define NEWEST_COLUMNS(X, T) X(T, int64_t, DB_I64, value)
typedef struct {
    NEWEST_COLUMNS(DB_FIELD, Newest)
} Newest;
DB_SHAPE(newest, Newest, NEWEST_COLUMNS);

static ErrorCode commands_send(Bench *bench, Place *place, int64_t *ret_us, Error *reterr)
{
    bench_tell(bench, "sending");
    return load_send(bench, &(Load){.place = place, .count = bench->options.count}, ret_us, reterr);
}

/* Claim, complete and settle as many as were sent, with one worker in this process. */
static ErrorCode commands_handle(Bench *bench, const Place *place, int64_t *ret_us, Error *reterr)
{
    Mono start = clock_mono();
    Crew crew;

    bench_tell(bench, "handling");
    crew_start(&crew, bench, place, &handler_noop, /* threads= */ 0);
    crew_wait(&crew, bench->options.count);
    *ret_us = mono_us_between(start, clock_mono());
    return crew_end(&crew, reterr);
}

/* ---- send and handle ---- */

static ErrorCode flood_round(Bench *bench, Place *place, Error *reterr)
{
    int64_t count = bench->options.count, us;
    Weight  before, between, after;

    TRY(weight_take(bench, place, "pawl", &before, reterr));
    TRY(commands_send(bench, place, &us, reterr));
    report_run(&bench->report, "send", "commands", UNIT_RATE, per_second(count, us));
    TRY(weight_take(bench, place, "pawl", &between, reterr));
    TRY(commands_handle(bench, place, &us, reterr));
    report_run(&bench->report, "handle", "commands", UNIT_RATE, per_second(count, us));
    TRY(weight_take(bench, place, "pawl", &after, reterr));
    weight_report(bench, "send", &before, &between, count);
    weight_report(bench, "handle", &between, &after, count);
    return OK;
}

ErrorCode section_flood(Bench *bench, int64_t value, Error *reterr)
{
    Place *place;

    (void)value;
    TRY(bench_place(bench, &place, reterr));
    for (int64_t round = 0; round < bench->options.rounds; round++)
        TRY(flood_round(bench, place, reterr));
    return OK;
}

/* ---- one at a time ---- */

ErrorCode section_single(Bench *bench, int64_t value, Error *reterr)
{
    Place *place;

    (void)value;
    TRY(bench_place(bench, &place, reterr));
    for (int64_t round = 0; round < bench->options.rounds; round++) {
        Load    load = {.place = place, .count = bench->options.count, .single = true};
        int64_t us;

        bench_tell(bench, "sending one at a time");
        TRY(load_send(bench, &load, &us, reterr));
        report_run(&bench->report, "single", "commands", UNIT_RATE, per_second(load.count, us));
    }
    return OK;
}

/* ---- beside many delayed ones: two databases, because a delayed command of any domain would be in the way of all ---- */

static ErrorCode delayed_measure(Bench *bench, int which, int64_t value, double *ret_rate, Error *reterr)
{
    Place  *place = &bench->places[which];
    int64_t us;

    (void)value;
    TRY(commands_send(bench, place, &us, reterr));
    TRY(commands_handle(bench, place, &us, reterr));
    *ret_rate = per_second(bench->options.count, us);
    return OK;
}

ErrorCode section_delayed(Bench *bench, int64_t value, Error *reterr)
{
    Turns turns = {
        "delayed", {"handle, none delayed", "handle, many delayed"},
         delayed_measure, value
    };
    Place  *places[2];
    int64_t us;

    for (int i = 0; i < 2; i++)
        TRY(bench_place(bench, &places[i], reterr));
    bench_tell(bench, "sending what is delayed");
    TRY(load_send(bench, &(Load){.place = places[1], .count = value, .delay_ms = LATER_MS}, &us, reterr));
    bench_tell(bench, "vacuum and checkpoint");
    for (int i = 0; i < 2; i++)
        TRY(place_calm(places[i], reterr));
    return turns_run(bench, &turns, reterr);
}

/* ---- by several processes; timed by the rows they leave, so that starting them does not count ---- */

static ErrorCode processes_measure(Bench *bench, int which, int64_t value, double *ret_rate, Error *reterr)
{
    TxOptions options = {.name = "bench span", .deadline = deadline_in_ms(CALL_MS), .read_only = true};
    Place    *place   = &bench->places[0];
    Newest    newest;
    Span      span;
    int64_t   us;

    options.arena = bench->arena;
    TRY(db_call(place->pool, &options, sql_bench_newest, DB_NONE, &newest_shape, &newest, reterr));
    TRY(commands_send(bench, place, &us, reterr));
    bench_tell(bench, which ? "handling by several processes" : "handling by one process");
    TRY(fleet_run(bench, place, which ? (int)value : 1, reterr));
    options.deadline = deadline_in_ms(CALL_MS);
    TRY(db_call(place->pool, &options, sql_bench_span, DB_ARGS(db_i64(newest.value)), &span_shape, &span, reterr));
    if (span.completed != bench->options.count)
        return fail(reterr, ERR_INTERNAL, "%lld of %lld commands were completed", (long long)span.completed,
                    (long long)bench->options.count);
    atomic_fetch_add(&bench->done, span.completed);
    *ret_rate = per_second(span.completed, span.us);
    return OK;
}

ErrorCode section_processes(Bench *bench, int64_t value, Error *reterr)
{
    Turns turns = {
        "processes", {"handle, one process", NULL},
         processes_measure, value
    };
    Place *place;

    turns.names[1] = arena_print(bench->arena, "handle, %d processes together", (int)value);
    TRY(bench_place(bench, &place, reterr));
    return turns_run(bench, &turns, reterr);
}
