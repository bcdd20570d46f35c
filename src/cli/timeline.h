/*
 * timeline.h - one command, process or transaction of the ledger for people: what it is, its state, and its events with
 * their times, or everything that it changed.
 */
#ifndef CLI_TIMELINE_H
#define CLI_TIMELINE_H

#include "base/arena.h"
#include "base/error.h"

/* json: as command_show() gives it. */
must_check ErrorCode timeline_print(const char *json, Arena *arena, Error *reterr);
/* The line of what a handler or a step has reported; NULL: nothing, no line. */
must_check ErrorCode progress_print(const char *json, Arena *arena, Error *reterr);
/* json: as process_show() gives it. */
must_check ErrorCode process_timeline_print(const char *json, Arena *arena, Error *reterr);
/* json: as wallet.transaction() writes it. */
must_check ErrorCode receipt_print(const char *json, Arena *arena, Error *reterr);

#endif
