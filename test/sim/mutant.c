/*
 * mutant.c - see mutant.h. Without a mutant every call goes to the real function.
 */
#include "test/sim/mutant.h"

#include <string.h>

#include "base/sync.h"
#include "pg/breaker.h"
#include "pg/conn.h"
#include "pg/retry.h"
#include "test/sim/fiber.h"

#define X(id, name) name,
const char *const mutant_names[MUTANT_COUNT] = {MUTANTS(X)};
#undef X
Mutant mutant = MUTANT_NONE;

bool __real_breaker_probe(Breaker *breaker, Mono now, unsigned *ret_probe);
bool __wrap_breaker_probe(Breaker *breaker, Mono now, unsigned *ret_probe);
bool __wrap_breaker_probe(Breaker *breaker, Mono now, unsigned *ret_probe)
{
    return __real_breaker_probe(breaker, now, ret_probe) ||
           (mutant == MUTANT_PROBE_ALWAYS && breaker->state == BREAKER_OPEN);
}

bool __real_breaker_is_closed(const Breaker *breaker);
bool __wrap_breaker_is_closed(const Breaker *breaker);
bool __wrap_breaker_is_closed(const Breaker *breaker)
{
    return __real_breaker_is_closed(breaker) || mutant == MUTANT_NEVER_REFUSE;
}

ErrorCode __real_conn_query(Conn *conn, const char *sql, int count, const Oid *types, const char *const *values,
                            Deadline deadline, PGresult **ret_result, Error *reterr);
ErrorCode __wrap_conn_query(Conn *conn, const char *sql, int count, const Oid *types, const char *const *values,
                            Deadline deadline, PGresult **ret_result, Error *reterr);
ErrorCode __wrap_conn_query(Conn *conn, const char *sql, int count, const Oid *types, const char *const *values,
                            Deadline deadline, PGresult **ret_result, Error *reterr)
{
    ErrorCode code = __real_conn_query(conn, sql, count, types, values, deadline, ret_result, reterr);

    if (mutant == MUTANT_COMMIT_RETRIED && strcmp(sql, "commit") == 0 && code == ERR_UNAVAILABLE) {
        (void)fail(reterr, ERR_BUSY, "rolled back, or so it says");
        error_set_sqlstate(reterr, "40001");
        return ERR_BUSY;
    }
    return code;
}

PGTransactionStatusType __real_conn_transaction(const Conn *conn);
PGTransactionStatusType __wrap_conn_transaction(const Conn *conn);
PGTransactionStatusType __wrap_conn_transaction(const Conn *conn)
{
    PGTransactionStatusType status = __real_conn_transaction(conn);

    /* The other way to tell that an answer was lost. */
    return mutant == MUTANT_COMMIT_RETRIED && status == PQTRANS_UNKNOWN ? PQTRANS_INTRANS : status;
}

void __real_cond_signal(Cond *cond);
void __wrap_cond_signal(Cond *cond);
void __wrap_cond_signal(Cond *cond)
{
    if (mutant != MUTANT_SIGNAL_LOST || sim_chance(700))
        __real_cond_signal(cond);
}

bool __real_retry_wait(const RetryPolicy *policy, int tries, Deadline deadline);
bool __wrap_retry_wait(const RetryPolicy *policy, int tries, Deadline deadline);
bool __wrap_retry_wait(const RetryPolicy *policy, int tries, Deadline deadline)
{
    return __real_retry_wait(policy, tries, mutant == MUTANT_DEADLINE_FORGOTTEN ? deadline_never() : deadline);
}
