/*
 * judge.h - what an error is about. Definitions, functions in C and reports over HTTP ask here, and workers over HTTP get
 * the answer as a verdict.
 *
 *     the step   counts as an attempt: it is tried again by the step's policy
 *     the item   what was given is wrong, and is wrong again the next time: final ("refused")
 *     the world  the database is away, locked, slow or stopping: costs nothing, and the same is done again ("busy")
 *
 * Threads: any.
 */
#ifndef PROCESS_JUDGE_H
#define PROCESS_JUDGE_H

#include "base/error.h"
#include "pg/tx.h"

typedef enum { ABOUT_STEP, ABOUT_ITEM, ABOUT_WORLD } About;

/* When it failed. */
typedef enum {
    JUDGE_OURS,   /* in a statement of pawl's own */
    JUDGE_BEGUN,  /* in a transaction in which code of an application has begun, without a word from it */
    JUDGE_RAISED, /* code of an application said so: its statement failed, and the session goes on */
} JudgeWhen;

About judge(ErrorCode code, JudgeWhen when);
/* Of a transaction in which code of an application has begun: has that code raised this error? */
bool judge_is_raised(const Tx *tx, const Error *error);

#endif
