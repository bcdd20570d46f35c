/*
 * progress.h - what a handler reports while it runs: a percentage, a sentence, or both.
 *
 * A report replaces the one before. The worker writes the newest reports of all its handlers in one statement, at most once a second
 * (worker_heartbeat.c), under the tokens of their leases; a program writes lines to a file descriptor (ProgressLines).
 *
 * Threads: any; a ProgressLines belongs to one. Ownership: texts are borrowed.
 */
#ifndef BUS_PROGRESS_H
#define BUS_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "pg/pool.h"

#define PROGRESS_NONE            (-1)
#define PROGRESS_CHARACTERS_MAX  200
#define PROGRESS_TEXT_SIZE       (4 * PROGRESS_CHARACTERS_MAX + 1)
#define PROGRESS_STEP_CHARACTERS 400 /* of a step's name; the rest is left out */

typedef struct {
    int         percent; /* 0 to 100; PROGRESS_NONE: not given */
    const char *text;    /* 1 to PROGRESS_CHARACTERS_MAX characters; NULL: not given */
    const char *step;    /* of a process, for people; NULL: it is of the command */
} JobProgress;

/* ERR_INVALID names the field. */
must_check ErrorCode progress_check(const JobProgress *progress, Error *reterr);

/* What pawl.claim returned, if this step has reported it; NULL: nothing, or another step. A name that two steps are shown by may give the progress of
 * the other one, which is a hint for people and programs, and nothing more. */
const char *progress_of_step(const char *json, const char *step, Arena *arena);

/* ---- writing them ---- */

typedef enum {
    PROGRESS_REPORTED,
    PROGRESS_LOST, /* the lease has ended, nothing was written */
    PROGRESS_BUSY, /* another transaction has it locked: report it again */
} ProgressVerdict;
extern const char *const progress_verdicts[]; /* by ProgressVerdict; NULL-terminated */

typedef struct {
    int64_t         id, token;
    JobProgress     progress;
    ProgressVerdict verdict; /* filled */
} ProgressItem;
/* All in one statement. */
must_check ErrorCode progress_report(Pool *pool, Deadline deadline, Arena *arena, ProgressItem *items, int count,
                                     Error *reterr);

/* ---- lines of a program ---- */

/* A line is `pawl: {"percent": N, "text": "..."}`. Any other one is counted and ignored. */
#define PROGRESS_LINE_MAX 8192

typedef struct {
    char   line[PROGRESS_LINE_MAX]; /* its beginning */
    size_t size;
    int    ignored;
    Error  why; /* of the first one that was ignored */
} ProgressLines;

typedef void ProgressTake(void *context, const JobProgress *progress);
/* Calls on_report for each report; its text is borrowed until it returns. */
void progress_lines_read(ProgressLines *lines, const char *bytes, size_t size, ProgressTake *on_report, void *context);
/* The last line may have no end. Logs what was ignored, once for the program. */
void progress_lines_end(ProgressLines *lines, ProgressTake *on_report, void *context);

#endif
