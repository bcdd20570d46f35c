/*
 * judge.c - see judge.h.
 */
#include "process/judge.h"

/* What kind of failure a code is. */
typedef enum {
    CLASS_SESSION, /* the session ended, was refused, or may have committed; or this program stops */
    CLASS_PASSING, /* a lock, a time limit */
    CLASS_FINAL,
} ErrorClass;

static ErrorClass class_of(ErrorCode code)
{
    Verdict verdict = error_verdict(code);

    if (code == ERR_REFUSED || code == ERR_STOPPING || verdict == VERDICT_EVICT || verdict == VERDICT_RESOLVE)
        return CLASS_SESSION;
    return verdict == VERDICT_RETRY ? CLASS_PASSING : CLASS_FINAL;
}

About judge(ErrorCode code, JudgeWhen when)
{
    static const About abouts[][3] = {
  /*                 OURS         BEGUN        RAISED    */
        [CLASS_SESSION] = {ABOUT_WORLD, ABOUT_WORLD, ABOUT_STEP},
        [CLASS_PASSING] = {ABOUT_WORLD, ABOUT_STEP,  ABOUT_STEP},
        [CLASS_FINAL]   = {ABOUT_ITEM,  ABOUT_ITEM,  ABOUT_STEP},
    };

    return abouts[class_of(code)][when];
}

bool judge_is_raised(const Tx *tx, const Error *error)
{
    return error->sqlstate[0] && conn_transaction(tx->conn) == PQTRANS_INERROR;
}
