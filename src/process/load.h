/*
 * load.h - what an activation continues from: the state, the records of its steps and the responses that arrived.
 *
 * Ownership: everything is in the arena that was given.
 */
#ifndef PROCESS_LOAD_H
#define PROCESS_LOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "pg/pool.h"
#include "pg/query.h"
#include "process/record.h"

/* A row of pawl.process_step. */
typedef struct {
    RecordId    id;
    int64_t     attempt;
    StepEnd     end;
    int64_t     retry_us;   /* of a failure: not tried again before; 0: as the policy says */
    const char *response;   /* of a wait: the name of those that it has taken; NULL: none */
    const char *taken;      /* which of this name, by their order from 0, a multirange; NULL: none */
    int64_t     call;       /* of code: the number of the call, from 0; -1: none */
    const char *call_kind;  /* of code; NULL: none */
    const char *input_hash; /* of code; NULL: none */
    const char *result;     /* JSON; NULL: none */
    const char *error;      /* NULL: it succeeded */
    int64_t     ended_us;
    bool        is_reset; /* a failure that does not count any more, because an operator had it tried again */
} StepRecord;

typedef struct {
    ResponseOf  of;
    const char *key;
    const char *payload;  /* JSON */
    RecordId    to;       /* of a signal: the wait that it answers; step NULL: any of its name */
    bool        is_aside; /* a reply that an operator has set aside */
} ProcessResponse;

#define LOADED_COLUMNS(X, T)                                                                                        \
    X(T, int64_t, DB_I64, id)                                                                                       \
    X(T, int64_t, DB_TIME, now_us)                                                                                  \
    X(T, int32_t, DB_I32, definition_id)                                                                            \
    X(T, const char *, DB_TEXT, phase)                                                                              \
    X(T, const char *, DB_JSONB, state)                                                                             \
    X(T, int64_t, DB_I64, version)                                                                                  \
    X(T, int64_t, DB_TIME, deadline_us)                                                                             \
    X(T, int64_t, DB_TIME, retried_us)                                                                              \
    X(T, const char *, DB_UUID, secret)                                                                             \
    X(T, int64_t, DB_I64, response_total)                                                                           \
    X(T, const char *, DB_JSONB, steps)                                                                             \
    X(T, const char *, DB_JSONB, responses)                                                                         \
    X(T, const char *, DB_JSONB, open) /* of which steps; NULL: it is not being compensated */                      \
    X(T, const char *, DB_JSONB, sent) /* sorted ids of what has not ended; NULL: none */                           \
    X(T, bool, DB_BOOL, is_last)                                                                                    \
    X(T, const char *, DB_TEXT, deadline_action) /* NULL: there is no deadline */                                   \
    X(T, const char *, DB_TEXT, reason)          /* why it is compensated; NULL: it is not, or code has not said */ \
    X(T, int32_t, DB_I32, life)                  /* from 1 */                                                       \
    X(T, const char *, DB_JSONB, input)          /* what this life began with; NULL: the payload of its command */
typedef struct {
    LOADED_COLUMNS(DB_FIELD, LoadedProcess)
} LoadedProcess;

/* A row for each process whose lease has this token, in the order of ids. bytes_max: no more rows follow one that reaches this sum, which has is_last; 0: no
 * limit. */
must_check ErrorCode process_load(Pool *pool, Deadline deadline, Arena *arena, const int64_t *ids,
                                  const int64_t *tokens, int count, int64_t bytes_max, LoadedProcess **ret_list,
                                  int *ret_count, Error *reterr);
/* The arrays in a loaded row; NULL texts are empty lists. */
must_check ErrorCode records_read(const char *json, Arena *arena, StepRecord **ret_list, int *ret_count, Error *reterr);
must_check ErrorCode responses_read(const char *json, Arena *arena, ProcessResponse **ret_list, int *ret_count,
                                    Error *reterr);
/* What has been sent and has not ended (LoadedProcess.open). */
must_check ErrorCode open_read(const char *json, Arena *arena, RecordId **ret_list, int *ret_count, Error *reterr);

#endif
