/*
 * deed.h - the smallest piece of keyed work, and the comparison of what callers were told with what was done.
 *
 * A deed is named by its caller and a number. deed has the key; deed_log has no unique key, so that a deed done twice
 * shows as two rows. A bad deed is refused by the server when it commits, not before.
 *
 * The equation
 *     told OK: exactly one row      told ERR_UNKNOWN: one or none      told anything else: none
 *
 * Threads: deed_do() and told_note() belong to the caller's thread; the rest fails the test: main thread only.
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

/* What one caller was told about its deeds, by number. */
typedef struct {
    int     count;
    uint8_t codes[DEEDS_MAX]; /* ErrorCode */
} Told;

typedef struct {
    int done, unknown, refused; /* as told */
    int wrong;                  /* told something else than the table says */
} Judgement;

/* Make the tables. */
void                 deed_prepare(const char *url);
must_check ErrorCode deed_do(Pool *pool, Deadline deadline, Deed deed, Error *reterr);
/* A later answer about the same deed replaces an earlier one, but for this: after "may have been done", only OK is
 * certain. */
void      told_note(Told *told, int number, ErrorCode code);
Judgement deeds_judge(const char *url, const Told *const *tolds, int callers);

/* How long a story lasts: PAWL_TEST_SECONDS, or this many. */
int story_seconds(int seconds);
/* Over the deadline by this much is the machine's fault, not ours. */
#define LATE_MS 500

#endif
