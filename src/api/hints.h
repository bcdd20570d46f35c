/*
 * hints.h - what a client should know about the names under which it sends: that nothing was ever sent to this domain, or that nothing is known to
 * run processes of this type. A misspelled name is a queue without workers. Nothing is refused: workers may come later.
 *
 * Names that need no hint are remembered, so a request to a known domain costs no lookup. A lookup is best effort: what fails gives no hint.
 * Threads: any. Ownership: a Hint and its item are borrowed until on_done.
 */
#ifndef API_HINTS_H
#define API_HINTS_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/clock.h"
#include "bus/send.h"
#include "pg/pool.h"

#define HINT_TEXT_SIZE 1024

typedef struct Hints Hints;

typedef struct {
    const SendItem *item;
    void (*on_done)(void *context);
    void *context;
    char  text[HINT_TEXT_SIZE]; /* "": none */
} Hint;

Hints *hints_new(Pool *pool);
void   hints_free(Hints *hints);
SCOPED(Hints, hints_free)

/* Before the item is sent, which makes its domain known. on_done(context) is called exactly once, on another thread or in here. */
void hint_submit(Hints *hints, Deadline deadline, Hint *hint);
/* The same for many items, whose names were checked, and waiting. NULL: none. */
const char *hints_of(Hints *hints, Deadline deadline, SendItem *const *items, int count, Arena *arena);

#endif
