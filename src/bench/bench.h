/*
 * bench.h - pawl bench: a table of sections, each measured in temporary databases of its own.
 *
 * `pawl bench NAME` runs the rows of bench_sections that are selected, one after the other. A section opens the databases it
 * needs with bench_database(), measures, and puts figures into the report; bench_run() drops the databases afterwards, whatever
 * happened. A new bench is a row here, and a row in the table of commands.
 *
 * reterr is never NULL in this module.
 *
 * Threads: bench_run() belongs to one thread. stopping, done and what may be used by any.
 */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "bench/database.h"
#include "bench/report.h"

#define BENCH_DATABASES_MAX 2
#define BENCH_DOMAIN        "bench"

/* What flags say; the table that reads them is bench_options. */
typedef struct {
    int64_t count, batch, clients, rounds, rate, seconds, wallets, groups;
} BenchOptions;

typedef struct {
    const char   *url, *listen_url; /* of the user's own database; borrowed */
    BenchOptions  options;
    Arena        *arena;
    Report        report;
    BenchDatabase databases[BENCH_DATABASES_MAX];
    int           database_count;

    atomic_bool           stopping; /* end soon, with ERR_STOPPING */
    _Atomic int64_t       done;     /* commands or transfers so far; only grows */
    _Atomic(const char *) what;     /* is going on */
} Bench;

typedef ErrorCode BenchRun(Bench *bench, int64_t value, Error *reterr);
typedef enum { BENCH_SWITCH, BENCH_NUMBER, BENCH_TIME } BenchKind;

typedef struct {
    const char *bench; /* "commands" */
    const char *flag;  /* what asks for it; NULL: it runs when no other section is asked for */
    BenchKind   kind;  /* of the flag's value; a time is in ms */
    int64_t     min, max;
    BenchRun   *run;
    const char *unread; /* options of its bench that it does not read, separated by spaces; NULL: none */
} BenchSection;
extern const BenchSection bench_sections[];
extern const int          bench_section_count;

typedef struct {
    const char *bench, *flag;
    int64_t     min, max, fallback;
    size_t      offset; /* in BenchOptions */
} BenchOption;
extern const BenchOption bench_options[];
extern const int         bench_option_count;

void bench_init(Bench *bench, const char *url, const char *listen_url, Arena *arena);
/* Run one section and drop its databases. ERR_STOPPING: it was interrupted. */
must_check ErrorCode bench_run(Bench *bench, const BenchSection *section, int64_t value, Error *reterr);

/* ---- for sections ---- */

/* One more database; it lives until the section ends. */
must_check ErrorCode bench_database(Bench *bench, BenchDatabase **ret_database, Error *reterr);
/* ERR_STOPPING after an interrupt. Called in every loop. */
must_check ErrorCode bench_continue(const Bench *bench, Error *reterr);
/* What the progress line says from now on. */
void bench_print(Bench *bench, const char *what);

BenchRun section_flood, section_single, section_delayed, section_processes;
BenchRun section_paced, section_hold, section_hold_xid, section_latency;
BenchRun section_steps, section_closed, section_resume, section_waiting;
BenchRun section_bot;
BenchRun section_transfers, section_transfers_hold_xid, section_hot, section_arrays, section_history, section_verify;

#endif
