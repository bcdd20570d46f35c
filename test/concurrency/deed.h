/*
 * deed.h - the smallest piece of keyed work, and the comparison of the results that callers got with the rows that were written.
 *
 * A deed is named by its caller and a number. deed has the key; deed_log has no unique key, so that a deed done twice
 * shows as two rows. A bad deed is refused by the server when it commits, not before.
 *
 * The equation
 *     OK: exactly one row      ERR_UNKNOWN: one or none      any other result: none
 *
 * Threads: deed_do() and result_record() belong to the caller's thread; the rest fails the test: main thread only.
 */
#ifndef CONCURRENCY_DEED_H
#define CONCURRENCY_DEED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/error.h"
#include "pg/pool.h"

#define DEEDS_MAX 50000 /* of one caller */

typedef struct {
    int  caller, number;
    bool bad;
} Deed;

/* The results that one caller got for its deeds, by number. */
typedef struct {
    int     count;
    uint8_t codes[DEEDS_MAX]; /* ErrorCode */
} Results;

typedef struct {
    int done, unknown, refused; /* by result */
    int wrong;                  /* the table says something else than the result */
} Judgement;

/* Make the tables. */
void                 deed_prepare(const char *url);
must_check ErrorCode deed_do(Pool *pool, Deadline deadline, Deed deed, Error *reterr);
/* A later result of the same deed replaces an earlier one, except that after ERR_UNKNOWN only OK is certain. */
void      result_record(Results *results, int number, ErrorCode code);
Judgement deeds_judge(const char *url, const Results *const *lists, int callers);

/* How long a test lasts: PAWL_TEST_SECONDS, or this many. */
int test_seconds(int seconds);
/* Over the deadline by this much is the machine's fault, not ours. */
#define LATE_MS (500 + test_stalled_ms())

#endif
