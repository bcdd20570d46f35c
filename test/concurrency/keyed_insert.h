/*
 * keyed_insert.h - inserts one row per key, and compares the results that callers got with the rows that were written.
 *
 * The key is a caller and a number. public.inserted has it as its primary key; public.inserted_log has no unique key,
 * so an insert that ran twice shows as two rows. The server refuses a bad insert at commit, not before.
 *
 * The equation
 *     OK: exactly one row      ERR_UNKNOWN: one or none      any other result: none
 *
 * Threads: keyed_insert_run() and result_record() belong to the caller's thread; the rest fails the test: main thread only.
 */
#ifndef CONCURRENCY_KEYED_INSERT_H
#define CONCURRENCY_KEYED_INSERT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/error.h"
#include "pg/pool.h"

#define INSERTS_MAX 50000 /* of one caller */

typedef struct {
    int  caller, number;
    bool bad;
} KeyedInsert;

/* The results that one caller got for its inserts, by number. */
typedef struct {
    int     count;
    uint8_t codes[INSERTS_MAX]; /* ErrorCode */
} Results;

typedef struct {
    int done, unknown, refused; /* by result */
    int wrong;                  /* the table says something else than the result */
} Comparison;

/* Make the tables. */
void                 keyed_insert_prepare(const char *url);
must_check ErrorCode keyed_insert_run(Pool *pool, Deadline deadline, KeyedInsert insert, Error *reterr);
/* A later result of the same insert replaces an earlier one, except that after ERR_UNKNOWN only OK is certain. */
void       result_record(Results *results, int number, ErrorCode code);
Comparison keyed_inserts_compare(const char *url, const Results *const *lists, int callers);

/* How long a test lasts: PAWL_TEST_SECONDS, or this many. */
int test_seconds(int seconds);
/* Over the deadline by this much is the machine's fault, not ours. */
#define LATE_MS (500 + test_stalled_ms())

#endif
