/*
 * bench.c - the tables, and the frame around a section.
 */
#include "bench/bench.h"

#include <assert.h>
#include <stddef.h>

#include "pg/tx.h"
#include "sql.h"
#include "wallet/post.h"

#define CONNECTIONS_SPARE 8
#define CLIENTS_MAX       64 /* more share combiners, not connections */
#define COUNT_MS          120000
#define HOUR_MS           3600000LL

/* clang-format off */
const BenchSection bench_sections[] = {
    {"commands", NULL,          BENCH_SWITCH, 0, 0,           section_flood, "--rate"},
    {"commands", "--single",    BENCH_SWITCH, 0, 0,           section_single, "--rate"},
    {"commands", "--delayed",   BENCH_NUMBER, 1, 10000000,    section_delayed},
    {"commands", "--processes", BENCH_NUMBER, 2, 16,          section_processes},
    {"commands", "--paced",     BENCH_TIME, 1000, 4 * HOUR_MS, section_paced, "--count --rounds"},
    {"commands", "--hold",      BENCH_TIME, 1000, 4 * HOUR_MS, section_hold, "--count --rounds"},
    {"commands", "--hold-xid",  BENCH_TIME, 1000, 4 * HOUR_MS, section_hold_xid, "--count --rounds"},
    {"latency",  NULL,          BENCH_SWITCH, 0, 0,           section_latency},
    {"processes", NULL,         BENCH_SWITCH, 0, 0,           section_steps, "--rate --seconds"},
    {"processes", "--closed",   BENCH_SWITCH, 0, 0,           section_closed, "--rate --seconds --batch"},
    {"processes", "--resume",   BENCH_SWITCH, 0, 0,           section_resume, "--count --rounds --clients --batch"},
    {"processes", "--waiting",  BENCH_NUMBER, 1, 10000000,    section_waiting, "--rate --seconds --clients"},
    {"bot",       NULL,         BENCH_SWITCH, 0, 0,           section_bot},
    {"transfers", NULL,         BENCH_SWITCH, 0, 0,           section_transfers},
    {"transfers", "--hold-xid", BENCH_TIME, 1000, 4 * HOUR_MS, section_transfers_hold_xid},
    {"transfers", "--hot",      BENCH_SWITCH, 0, 0,           section_hot},
    {"transfers", "--arrays",   BENCH_NUMBER, 2, WALLET_BATCH_MAX, section_arrays},
    {"transfers", "--history",  BENCH_NUMBER, 1000, 10000000, section_history},
    {"transfers", "--verify",   BENCH_NUMBER, 1000, 10000000, section_verify},
};

#define AT(field) offsetof(BenchOptions, field)
const BenchOption bench_options[] = {
    {"commands", "--count",   1, 10000000, 200000, AT(count)},
    {"commands", "--batch",   1, 10000,    1000,   AT(batch)},
    {"commands", "--clients", 1, 256,      2,      AT(clients)},
    {"commands", "--rounds",  1, REPORT_RUNS_MAX, 3, AT(rounds)},
    {"commands", "--rate",    1, 100000,   2000,   AT(rate)},
    {"latency",  "--rate",    1, 100000,   100,    AT(rate)},
    {"latency",  "--seconds", 1, 3600,     20,     AT(seconds)},
    {"processes", "--count",   1, 10000000, 30000,  AT(count)},
    {"processes", "--batch",   1, 10000,    1000,   AT(batch)},
    {"processes", "--clients", 1, 1000,     256,    AT(clients)},
    {"processes", "--rounds",  1, REPORT_RUNS_MAX, 3, AT(rounds)},
    {"processes", "--rate",    1, 100000,   100,    AT(rate)},
    {"processes", "--seconds", 1, 3600,     20,     AT(seconds)},
    {"bot",      "--count",   1, 1000000,  20000,  AT(count)},
    {"bot",      "--clients", 1, 256,      128,     AT(clients)},
    {"bot",      "--groups",  1, 100000,   2000,   AT(groups)},
    {"bot",      "--rounds",  1, REPORT_RUNS_MAX, 3, AT(rounds)},
    {"transfers", "--count",   1, 10000000, 100000, AT(count)},
    {"transfers", "--clients", 1, 1000,     64,     AT(clients)},
    {"transfers", "--rounds",  1, REPORT_RUNS_MAX, 3, AT(rounds)},
    {"transfers", "--wallets", 2, 1000000,  1000,   AT(wallets)},
};
#undef AT
/* clang-format on */

const int bench_section_count = COUNT(bench_sections);
const int bench_option_count  = COUNT(bench_options);

#define COUNTS_COLUMNS(X, T) X(T, I64, sent, ready, delayed, leased, completed)
DB_SHAPE(counts, ReportCounts, COUNTS_COLUMNS);

void bench_init(Bench *bench, const char *url, const char *listen_url, Arena *arena)
{
    *bench = (Bench){.url = url, .listen_url = listen_url, .arena = arena};
    atomic_store(&bench->what, "nothing yet");
    report_init(&bench->report, arena);
}

ErrorCode bench_database(Bench *bench, BenchDatabase **ret_database, Error *reterr)
{
    BenchDatabaseOptions options  = {.url         = bench->url,
                                     .listen_url  = bench->listen_url,
                                     .connections = (int)(bench->options.clients < CLIENTS_MAX ? bench->options.clients
                                                                                               : CLIENTS_MAX) +
                                                    CONNECTIONS_SPARE};
    BenchDatabase       *database = &bench->databases[bench->database_count++];

    assert(bench->database_count <= BENCH_DATABASES_MAX);
    bench_print(bench, "making a database");
    TRY(database_open(&options, bench->arena, database, reterr));
    bench->report.version            = database->version;
    bench->report.synchronous_commit = database->synchronous_commit;
    bench->report.fsync              = database->fsync;
    *ret_database                    = database;
    return bench_continue(bench, reterr);
}

ErrorCode bench_continue(const Bench *bench, Error *reterr)
{
    return atomic_load(&bench->stopping) ? fail(reterr, ERR_STOPPING, "interrupted") : OK;
}

void bench_print(Bench *bench, const char *what)
{
    atomic_store(&bench->what, what);
}

/* A figure is worth nothing if commands were lost or doubled on the way. */
static ErrorCode database_count(Bench *bench, const BenchDatabase *database, Error *reterr)
{
    TxOptions     options = {.name = "bench counts", .deadline = deadline_in_ms(COUNT_MS), .read_only = true};
    ReportCounts *sum     = &bench->report.counts, counts;

    options.arena = bench->arena;
    TRY(db_call(database->pool, &options, sql_bench_counts, DB_NONE, &counts_shape, &counts, reterr));
    if (counts.sent != counts.ready + counts.delayed + counts.leased + counts.completed)
        return fail(reterr, ERR_INTERNAL,
                    "%lld commands were sent, %lld are completed and %lld wait: they do not add up",
                    (long long)counts.sent, (long long)counts.completed,
                    (long long)(counts.ready + counts.delayed + counts.leased));
    sum->sent += counts.sent;
    sum->ready += counts.ready;
    sum->delayed += counts.delayed;
    sum->leased += counts.leased;
    sum->completed += counts.completed;
    return OK;
}

/* Drops every database, also after one could not be dropped; returns the first failure. */
static ErrorCode databases_close(Bench *bench, ErrorCode code, Error *reterr)
{
    bench_print(bench, "dropping databases");
    while (bench->database_count > 0) {
        Error     error  = {0};
        ErrorCode closed = database_close(&bench->databases[--bench->database_count], &error);

        if (closed != OK && (code == OK || code == ERR_STOPPING)) {
            code    = closed;
            *reterr = error;
        }
    }
    return code;
}

ErrorCode bench_run(Bench *bench, const BenchSection *section, int64_t value, Error *reterr)
{
    ErrorCode code = section->run(bench, value, reterr);

    for (int i = 0; i < bench->database_count && code == OK; i++)
        code = database_count(bench, &bench->databases[i], reterr);
    return databases_close(bench, code, reterr);
}
