/*
 * pawl.h - the library: a PostgreSQL to lean on, from C.
 *
 *     Pawl *pawl;
 *     PawlError error;
 *     if (pawl_open("postgresql://app@db/shop", &pawl, &error) != PAWL_OK) { puts(error.text); return 1; }
 *     pawl_transaction(pawl, &(PawlTransaction){.name = "order", .timeout_ms = 2000, .keyed = true}, body, &order, &error);
 *     pawl_close(pawl);
 *
 * Behind it: a pool that survives outages, a breaker, retries that know what may be retried, and one deadline for all of
 * a call's waits. See docs/library.md.
 *
 * The library writes nothing to standard output or error. Threads: a Pawl may be used by any number of threads at once; a PawlTx belongs to the body it was given to.
 * Ownership: pawl_close() frees a Pawl; what a PawlTx returns lives until its body returns.
 */
#ifndef PAWL_H
#define PAWL_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Everything else in the library is hidden. */
#pragma GCC visibility push(default)

typedef struct Pawl   Pawl;
typedef struct PawlTx PawlTx;

/* What a caller does next: a program looks at this, a person at PawlError.text. */
typedef enum {
    PAWL_OK,
    PAWL_REFUSED, /* it will not work like this: bad input, conflict, missing rights */
    PAWL_NOT_FOUND,
    PAWL_TRY_AGAIN,   /* busy or out of time: nothing was done, the same call may work later */
    PAWL_UNAVAILABLE, /* no database: nothing was done */
    PAWL_UNKNOWN,     /* it may have been done: only a keyed transaction, run again, can tell */
    PAWL_FAILED       /* a bug, here or there */
} PawlStatus;

typedef struct {
    PawlStatus status;
    char       sqlstate[6]; /* "" when PostgreSQL did not speak */
    char       text[512];
} PawlError;

const char *pawl_version(void);

/* A pool for one database, opened on first use. error may be NULL everywhere. */
PawlStatus pawl_open(const char *database_url, Pawl **ret_pawl, PawlError *error);
void       pawl_close(Pawl *pawl);
/* Does the database answer within this time? */
PawlStatus pawl_ping(Pawl *pawl, int timeout_ms, PawlError *error);

/* A transaction is a function. It is run again from its beginning when PostgreSQL asks for it (deadlock, lost
 * connection), so it touches nothing but its context and the database. Return PAWL_OK to commit, anything else to roll
 * back. keyed: it begins by inserting an idempotency key, so it may also be run again when the answer to commit was
 * lost. */
typedef PawlStatus PawlBody(PawlTx *tx, void *context);
typedef struct {
    const char *name;       /* for logs and messages */
    int         timeout_ms; /* for everything: waiting, retries, commit; 0: 10 s */
    bool        keyed;
} PawlTransaction;
PawlStatus pawl_transaction(Pawl *pawl, const PawlTransaction *options, PawlBody *body, void *context,
                            PawlError *error);

/* One statement with text parameters ($1, $2, ...; NULL is SQL null). A result is rows of texts. */
typedef struct {
    int                rows, columns;
    const char *const *values;  /* rows * columns, row by row; NULL is SQL null */
    long long          changed; /* rows inserted, updated or deleted */
} PawlResult;
PawlStatus pawl_query(PawlTx *tx, const char *sql, int count, const char *const *parameters, PawlResult *ret_result);
/* The error of the last pawl_query() that failed in this transaction. */
const PawlError *pawl_tx_error(const PawlTx *tx);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
