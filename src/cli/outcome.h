/*
 * outcome.h - the flag --wait: after a send, wait for the end of the command or process, and print how it has ended.
 */
#ifndef CLI_OUTCOME_H
#define CLI_OUTCOME_H

#include "bus/send.h"
#include "cli/command.h"

#define WAIT_FLAG                                                                                    \
    {                                                                                                \
        "--wait", "[TIME]", "wait for its end, so long at most, and print the outcome; default: 30s" \
    }

/* ERR_USAGE: --wait is no duration. *ret_wait_ms 0: not given. */
must_check ErrorCode wait_take(const Call *call, int64_t *ret_wait_ms, Error *reterr);
/* After the item was sent, and its id printed unless --json was given: wait, and print. noun: "command" or "process"; prefix: of its domain's name on
 * the bus. Errors become the exit status: 1 when it has ended as anything but COMPLETED, 75 when it has not ended in time. */
must_check ErrorCode wait_print(Call *call, const char *noun, const char *prefix, const SendItem *item, int64_t wait_ms,
                                Error *reterr);

#endif
