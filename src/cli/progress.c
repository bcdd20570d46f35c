/*
 * progress.c - see progress.h.
 */
#include "cli/progress.h"

#include <stdio.h>
#include <unistd.h>

#define EVERY_MS 200

/* The line is written past the filter of standard error, which would show what moves the cursor: cli/visible.h. */

void progress_begin(Progress *progress)
{
    *progress = (Progress){.shown = isatty(STDERR_FILENO), .start = clock_mono(), .last = clock_mono()};
}

void progress_show_more(Progress *progress, int64_t count, const char *what, const char *more)
{
    Mono    now = clock_mono();
    int64_t ms  = mono_ms_between(progress->last, now);

    if (!progress->shown || ms < EVERY_MS)
        return;
    dprintf(STDERR_FILENO, "\r%lld %s, %lld/s%s\033[K", (long long)count, what,
            (long long)((count - progress->last_count) * 1000 / ms), more);
    progress->last       = now;
    progress->last_count = count;
}

void progress_show(Progress *progress, int64_t count, const char *what)
{
    progress_show_more(progress, count, what, "");
}

void progress_end(Progress *progress)
{
    if (progress->shown)
        dprintf(STDERR_FILENO, "\r\033[K");
}
