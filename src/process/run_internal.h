/*
 * run_internal.h - an activation, shared by the file that answers what it knows (run_read.c) and the one that writes and ends it (run.c).
 */
#ifndef PROCESS_RUN_INTERNAL_H
#define PROCESS_RUN_INTERNAL_H

#include "base/sync.h"
#include "process/run.h"

/* The responses of one kind and name, in the order of their arrival. */
typedef struct {
    ResponseOf              of;
    const char            **payloads;
    const ProcessResponse **list; /* the same */
    int                     count;
    int                     aside_count; /* that were set aside, and are not among them */
} ResponseList;

struct Run {
    ProcessWriter       *writer;
    Job                 *job;
    const LoadedProcess *loaded;
    ProcessMetrics      *metrics;
    Mono                 began;
    Mutex                responses_mutex; /* see run_responses_mutex() */
    Mutex                mutex;           /* guards the rest and the arena */
    Arena               *arena;
    const char          *state, *phase;
    int64_t              version;
    StepRecord         **records; /* sorted by identity and attempt */
    int                  record_count, record_space;
    const StepRecord   **succeeded; /* in the order in which they ended */
    int                  succeeded_count;
    ResponseList        *responses; /* sorted */
    int                  response_count, response_total;
    Value               *sent; /* ids of commands and children, JSON strings, sorted */
    int                  sent_count;
    RecordId            *open; /* steps whose commands or children have not ended */
    int                  open_count;
    Wait                *waits;
    int                  wait_count, wait_space;
    WaitKind             wait_kind;
    RecordId             wait_step;
    int64_t              due_us;
    int64_t              condition_version; /* the oldest state that a condition was evaluated against; 0: none */
    size_t               record_bytes;
    size_t               bytes_at_start; /* of the arena */
    size_t               bytes_counted;  /* that it has grown by since, in the sum of the pod */
    bool                 has_waits, is_over, is_canceled, is_unwritten;
    char                *suspected;
};

/* Under the mutex. A record that is known already is left as it is. */
void run_record_add(Run *run, StepRecord *record);
void run_responses_add(Run *run, const ProcessResponse *list, int count);
void run_sent_add(Run *run, const char *json);
int  run_attempts_recorded(const Run *run, const RecordId *id);
/* Has the process a deadline that this activation has to obey? */
bool run_deadline_counts(const Run *run);
/* It ends: what it has added does not count any more. */
void run_bytes_give(const Run *run);
/* A list of the arena that has space for one item more. */
void *run_list_grow(Arena *arena, void *list, int count, int *space, size_t size);

#endif
