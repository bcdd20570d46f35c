/*
 * wait.c - waits for the ends of commands and processes: all threads share the statements of one (bus/outcome_wait.h).
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/uuid.h"
#include "lib/library_internal.h"
#include "process/process.h"

/* One block has them all: its first text is the status. */
static PawlEnded ended_copy(const CommandOutcome *outcome)
{
    size_t    status = strlen(outcome->status) + 1, result = outcome->result ? strlen(outcome->result) + 1 : 0;
    size_t    error = outcome->error ? strlen(outcome->error) + 1 : 0;
    char     *block = memory_new(1, status + result + error);
    PawlEnded ended = {.has_ended = outcome->ended, .status = memcpy(block, outcome->status, status)};

    if (result)
        ended.result = memcpy(block + status, outcome->result, result);
    if (error)
        ended.error = memcpy(block + status + result, outcome->error, error);
    return ended;
}

static ErrorCode wait_for(Pawl *pawl, const char *noun, OutcomeWait *wait, PawlEnded *ret_ended, Error *reterr)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    CommandOutcome            outcome;

    TRY(outcome_wait_run(pawl->outcomes, arena, noun, wait, &outcome, reterr));
    *ret_ended = ended_copy(&outcome);
    if (!outcome.ended)
        return fail(reterr, ERR_TIMEOUT, "%s %s has not ended in time: it is %s", noun, wait->command_id,
                    outcome.status);
    return OK;
}

static PawlStatus library_wait(Pawl *pawl, const char *noun, const char *id, const char *prefix, const char *domain,
                               int timeout_ms, PawlEnded *ret_ended, PawlError *error)
{
    Error                       why    = {0};
    int                         all_ms = timeout_ms < 0 || timeout_ms > INT_MAX - OUTCOME_READ_MS
                                             ? timeout_ms
                                             : (timeout_ms ? timeout_ms : LIBRARY_TIMEOUT_MS) + OUTCOME_READ_MS;
    scoped(library_leave) Pawl *inside = library_enter(pawl, all_ms, &why);
    char                        uuid[UUID_TEXT_SIZE], name[SEND_DOMAIN_MAX + 1];
    PawlEnded                   ended = {0};
    OutcomeWait                 wait  = {.command_id = uuid, .prefix = prefix, .until = library_deadline(timeout_ms)};
    ErrorCode                   code  = why.code;

    if (inside && (!id || !uuid_parse(id, uuid)))
        code = fail(&why, ERR_INVALID, "%s_id must be a UUID, got %s%.60s%s", noun, id ? "\"" : "", id ? id : "NULL",
                    id ? "\"" : "");
    else if (inside) {
        snprintf(name, sizeof name, "%s%s", prefix ? prefix : "", domain ? domain : "");
        wait.domain = domain ? name : NULL;
        code        = wait_for(pawl, noun, &wait, &ended, &why);
    }
    if (ret_ended)
        *ret_ended = ended;
    else
        pawl_ended_free(&ended);
    return library_answer(code, &why, error);
}

PawlStatus pawl_wait(Pawl *pawl, const char *command_id, const char *domain, int timeout_ms, PawlEnded *ret_ended,
                     PawlError *error)
{
    return library_wait(pawl, "command", command_id, NULL, domain, timeout_ms, ret_ended, error);
}

PawlStatus pawl_process_wait(Pawl *pawl, const char *process_id, const char *domain, int timeout_ms,
                             PawlEnded *ret_ended, PawlError *error)
{
    return library_wait(pawl, "process", process_id, PROCESS_DOMAIN_PREFIX, domain, timeout_ms, ret_ended, error);
}

void pawl_ended_free(PawlEnded *ended)
{
    if (!ended)
        return;
    free((void *)(uintptr_t)ended->status);
    *ended = (PawlEnded){0};
}
