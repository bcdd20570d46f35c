/*
 * verify.h - checks the ledger for consistency while it is in use, and names every inconsistent row.
 *
 * First everything that can be sealed is sealed, then two connections run the steps of wallet.verify_plan. Each step is one
 * statement, so it reads one snapshot, and postings go on meanwhile.
 *
 * Threads: any. Ownership: findings live in the arena.
 */
#ifndef WALLET_VERIFY_H
#define WALLET_VERIFY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/finding.h"
#include "pg/pool.h"

typedef struct {
    bool incremental; /* only what is new since the last verification that found nothing */
    /* Called now and then with the number of rows read and of all rows; from several threads, one at a time. */
    void (*progress)(void *context, int64_t done, int64_t total);
    void *context;
} VerifyOptions;

typedef struct {
    Findings findings;
    int64_t  rows;     /* read */
    int64_t  seals;    /* of the chain that were read */
    int64_t  unsealed; /* transactions that are too new to be sealed: they were checked, but not against the chain */
    int64_t  took_ms;
} VerifyReport;

/* The return value is about the run; findings are in the report. ERR_BUSY: it found nothing, and where the next one begins is locked. A verification without findings is remembered for
 * the next incremental one if the login is an admin. */
must_check ErrorCode wallet_verify(Pool *pool, const VerifyOptions *options, Deadline deadline, Arena *arena,
                                   VerifyReport *ret_report, Error *reterr);

/* {"ok", "rows", "seals", "unsealed", "took_ms", and what findings_write() adds} */
void verify_write(Writer *writer, const VerifyReport *report);

#endif
