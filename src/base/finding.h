/*
 * finding.h - inconsistent rows that a verification found, in a list of bounded length.
 *
 *     findings_add(&report->findings, arena, &(Finding){"entry", "entry 7 of wallet 9", "is not as it was sealed"});
 *
 * A list of zeros is empty. A list that is full says so instead of growing.
 * Threads: one at a time. Ownership: the texts are copied to the arena.
 */
#ifndef BASE_FINDING_H
#define BASE_FINDING_H

#include <stdbool.h>

#include "base/answer.h"
#include "base/arena.h"
#include "base/writer.h"

#define FINDINGS_MAX 1000

typedef struct {
    const char *what;     /* the kind of row: "entry", "match" */
    const char *which;    /* the row: "match 42 of chat -7" */
    const char *sentence; /* what is wrong with it */
} Finding;

typedef struct {
    Finding rows[FINDINGS_MAX];
    int     count;
    bool    more; /* than fit */
} Findings;

void findings_add(Findings *findings, Arena *arena, const Finding *finding);
/* Adds the rows of another list of the same arena. */
void findings_join(Findings *findings, const Findings *other);

/* "findings": [{"what", "which", "sentence"}], "more", into the object that is open. */
void                     findings_write(Writer *writer, const Findings *findings);
extern const AnswerTable answer_finding;

#endif
