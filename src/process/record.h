/*
 * record.h - which record of a process: the columns that identify a row of pawl.process_step, and what a response is of.
 *
 * A record is of a step: its name in the definition, or of the call in code; which item or round of each loop around it; and whether it is that step
 * or its compensation. The decision after a round of a "repeat" is a record of the repeat with the number of the round. No name has a meaning in any of its characters: record_text() is for people, and nothing reads it.
 * Threads: any. Ownership: names are borrowed.
 */
#ifndef PROCESS_RECORD_H
#define PROCESS_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/value.h"
#include "base/writer.h"

#define RECORD_DEPTH_MAX 8 /* loops inside each other, and the round that a decision is about */

#define RECORD_KINDS(X)                                                                \
    X(RECORD_STEP, "step")   /* an attempt of the step has ended */                    \
    X(RECORD_BEGIN, "begin") /* it began to wait or to loop, with what it remembers */ \
    X(RECORD_INPUT, "input") /* what its attempts are given */                         \
    X(RECORD_DONE,                                                                     \
      "done") /* its action has happened, and the step could not be recorded: a step with it is not run again, and is undone */
#define X(kind, name) kind,
typedef enum { RECORD_KINDS(X) RECORD_KIND_COUNT } RecordKind;
#undef X
extern const char *const record_kind_names[]; /* ended by NULL */

/* How an attempt of a step has ended. */
#define STEP_ENDS(X)                                                                \
    X(END_DONE, "done")                                                             \
    X(END_FAILED, "failed")       /* counts as an attempt: tried again by policy */ \
    X(END_FINAL, "final")         /* for good, whatever the policy says */          \
    X(END_REFUSED, "refused")     /* for good, for a business reason */             \
    X(END_TIMED_OUT, "timed_out") /* a wait: with an error it has failed, else the process went on */
#define X(end, name) end,
typedef enum { STEP_ENDS(X) STEP_END_COUNT } StepEnd;
#undef X
extern const char *const step_end_names[]; /* ended by NULL */
/* Is no other attempt made? */
bool step_end_is_final(StepEnd end);

/* Attempt n + 1 comes delay * factor^(n-1) after attempt n has failed, at most delay_max. */
typedef struct {
    int64_t attempts; /* from 1, the first one included */
    int64_t delay_ms, delay_ms_max;
    double  factor; /* 1 to 10 */
} StepRetry;
#define STEP_RETRY_DEFAULT ((StepRetry){.attempts = 5, .delay_ms = 1000, .delay_ms_max = 60000, .factor = 2})

typedef struct {
    const char *step; /* NULL: no record */
    int32_t     item[RECORD_DEPTH_MAX];
    int         depth; /* of item */
    bool        undo;  /* of the compensation */
    RecordKind  kind;
    int         aside; /* set aside by the nth retry from a step; 0: it counts. Of an undo: which of these it undoes */
} RecordId;

/* Of a step outside of any loop. */
RecordId record_of(const char *step);
/* The record of another kind of the same step. */
RecordId record_as(RecordId id, RecordKind kind);
/* <0, 0, >0: by step, item, undo, kind and aside. */
int record_compare(const RecordId *a, const RecordId *b);
/* "ship[2]", "~ship", "ship:done", "ship:gone1": as pawl.record_text() prints it. */
const char *record_text(Arena *arena, const RecordId *id);
/* The members of an object that are not what they are most often. */
void record_write(Writer *writer, const RecordId *id);
/* Its items as an array. */
void record_write_items(Writer *writer, const char *name, const RecordId *id);
/* The same without its step and kind. */
void record_write_place(Writer *writer, const RecordId *id);
/* Is it the same step and item? */
bool record_is_step(const RecordId *a, const RecordId *b);
/* item: an array of numbers, or missing. */
void record_item_read(Value item, RecordId *id);

/* ---- responses ---- */

#define RESPONSE_KINDS(X)            \
    X(RESPONSE_SIGNAL, "signal")     \
    X(RESPONSE_REPLY, "reply")       \
    X(RESPONSE_CANCEL, "cancel")     \
    X(RESPONSE_DEADLINE, "deadline") \
    X(RESPONSE_MOVE, "move")         \
    X(RESPONSE_ANY, "any") /* of a wait: whatever comes */
#define X(kind, name) kind,
typedef enum { RESPONSE_KINDS(X) RESPONSE_KIND_COUNT } ResponseKind;
#undef X
extern const char *const response_kind_names[]; /* ended by NULL */

/* What a response is of, or what a wait is for. */
typedef struct {
    ResponseKind kind;
    RecordId     of; /* REPLY: the step that has sent; SIGNAL: its name is in `step` */
} ResponseOf;
ResponseOf response_signal(const char *name);
ResponseOf response_reply(RecordId step);
ResponseOf response_any(void);
int        response_compare(const ResponseOf *a, const ResponseOf *b);

/* A wait for so many of them since the start. */
typedef struct {
    ResponseOf of;
    int64_t    count;
    RecordId   to; /* of signals: the step that waits; those that name another step are not for it */
} Wait;

/* Which responses of a name a wait has taken, by their order from 0, as PostgreSQL prints a multirange: "{[0,3),[5,6)}". *at is moved behind the range. false:
 * there is no other one. */
bool taken_next(const char **at, int64_t *ret_first, int64_t *ret_behind);
/* Into an empty text; the server joins neighbours. */
void        taken_add(Text *ranges, int64_t position);
const char *taken_end(Text *ranges);

/* The index of a word in a list that NULL ends; -1: it is not there. */
int record_word(const char *const *words, const char *bytes, size_t size);

#endif
