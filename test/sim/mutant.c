/*
 * mutant.c - see mutant.h. Without a mutant every call goes to the real function.
 */
#include "test/sim/mutant.h"

#include "base/arena.h"
#include "base/sync.h"
#include "pg/breaker.h"
#include "pg/conn.h"
#include "pg/retry.h"
#include "test/sim/fiber.h"
#include "test/sim/server.h"

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

Mono __real_breaker_next_probe(const Breaker *breaker);
Mono __wrap_breaker_next_probe(const Breaker *breaker);
Mono __wrap_breaker_next_probe(const Breaker *breaker)
{
    return mutant == MUTANT_PROBE_LATE ? mono_plus_ms(breaker->opened_at, 60000) : __real_breaker_next_probe(breaker);
}

void __real_conn_close(Conn *conn);
void __wrap_conn_close(Conn *conn);
void __wrap_conn_close(Conn *conn)
{
    if (mutant == MUTANT_CANCEL_COMMIT && !conn_is_good(conn))
        session_cancel(session_name((Session *)(uintptr_t)conn_native(conn)));
    __real_conn_close(conn);
}

void __real_arena_rewind(Arena *arena, ArenaMark mark);
void __wrap_arena_rewind(Arena *arena, ArenaMark mark);
void __wrap_arena_rewind(Arena *arena, ArenaMark mark)
{
    if (mutant != MUTANT_ARENA_KEPT)
        __real_arena_rewind(arena, mark);
}

ErrorCode __real_conn_commit(Conn *conn, Deadline deadline, Error *reterr);
ErrorCode __wrap_conn_commit(Conn *conn, Deadline deadline, Error *reterr);
ErrorCode __wrap_conn_commit(Conn *conn, Deadline deadline, Error *reterr)
{
    ErrorCode code = __real_conn_commit(conn, deadline, reterr);

    if (mutant == MUTANT_COMMIT_RETRIED && code == ERR_UNAVAILABLE) {
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

bool __real_retry_wait(const BackoffPolicy *policy, int tries, Deadline deadline);
bool __wrap_retry_wait(const BackoffPolicy *policy, int tries, Deadline deadline);
bool __wrap_retry_wait(const BackoffPolicy *policy, int tries, Deadline deadline)
{
    return __real_retry_wait(policy, tries, mutant == MUTANT_DEADLINE_FORGOTTEN ? deadline_never() : deadline);
}
