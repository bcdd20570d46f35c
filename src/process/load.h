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
#include "bus/claim.h"
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

/* open: the steps that sent what has not ended; NULL: it is not being compensated. sent: sorted ids of what has not ended; NULL: none.
 * input: what this life began with; NULL: the payload of its command. deadline_action NULL: there is no deadline. reason: why it is
 * compensated; NULL: it is not, or code has not said. life: from 1. */
#define LOADED_COLUMNS(X, T)                                \
    X(T, I64, id, version, response_total)                  \
    X(T, TIME, now_us, deadline_us, retried_us)             \
    X(T, I32, definition_id, life)                          \
    X(T, TEXT, phase, deadline_action, reason)              \
    X(T, UUID, secret)                                      \
    X(T, JSONB, state, steps, responses, open, sent, input) \
    X(T, BOOL, is_last)
DB_ROW(LoadedProcess, LOADED_COLUMNS);

/* A process that was claimed. loaded: what was read with it; without a state: nothing. */
typedef struct {
    ClaimedCommand command;
    LoadedProcess  loaded;
} ClaimedProcess;
extern const ClaimSource process_claims;

/* A row for each process whose lease has this token, in the order of ids. bytes_max: no more rows follow one that reaches this sum, which has is_last; 0: no
 * limit. */
must_check ErrorCode process_load(Pool *pool, Deadline deadline, Arena *arena, const int64_t *ids,
                                  const int64_t *tokens, int count, int64_t bytes_max, LoadedProcess **ret_list,
                                  int *ret_count, Error *reterr);
/* The same from the object of pawl.process_loaded(). */
LoadedProcess *loaded_read(const char *json, Arena *arena);
/* The arrays in a loaded row; NULL texts are empty lists. */
must_check ErrorCode records_read(const char *json, Arena *arena, StepRecord **ret_list, int *ret_count, Error *reterr);
must_check ErrorCode responses_read(const char *json, Arena *arena, ProcessResponse **ret_list, int *ret_count,
                                    Error *reterr);
/* What has been sent and has not ended (LoadedProcess.open). */
must_check ErrorCode open_read(const char *json, Arena *arena, RecordId **ret_list, int *ret_count, Error *reterr);

#endif
