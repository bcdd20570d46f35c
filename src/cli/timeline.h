/*
 * timeline.h - one command's detail for people: what it is, its state, and its events with their times.
 */
#ifndef CLI_TIMELINE_H
#define CLI_TIMELINE_H

#include "base/arena.h"
#include "base/error.h"

/* json: as command_show() gives it. */
must_check ErrorCode timeline_print(const char *json, Arena *arena, Error *reterr);
/* The line of what a handler or a step has reported; NULL: nothing, no line. */
must_check ErrorCode progress_print(const char *json, Arena *arena, Error *reterr);

#endif
