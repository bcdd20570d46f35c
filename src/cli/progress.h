/*
 * progress.h - one line that is written over and over while long work goes on; on a terminal only, on standard error.
 */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

typedef struct {
    bool    shown; /* standard error is a terminal */
    Mono    start, last;
    int64_t last_count;
} Progress;

void progress_begin(Progress *progress);
/* "12345 sent, 60000/s", at most five times a second. */
void progress_show(Progress *progress, int64_t count, const char *what);
/* The same with more to say behind the rate. */
void progress_show_more(Progress *progress, int64_t count, const char *what, const char *more);
void progress_end(Progress *progress);

#endif
