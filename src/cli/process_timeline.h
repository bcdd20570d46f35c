/*
 * process_timeline.h - one process for people: what it is, what it waits for, and what happened to it when.
 */
#ifndef CLI_PROCESS_TIMELINE_H
#define CLI_PROCESS_TIMELINE_H

#include "base/arena.h"
#include "base/error.h"

/* json: as process_show() gives it. */
must_check ErrorCode process_timeline_print(const char *json, Arena *arena, Error *reterr);

#endif
