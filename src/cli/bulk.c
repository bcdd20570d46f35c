/*
 * bulk.c - see bulk.h.
 */
#include "cli/bulk.h"

#include <inttypes.h>
#include <string.h>

#include "base/writer.h"
#include "cli/decision.h"
#include "cli/print.h"
#include "cli/progress.h"
#include "cli/source.h"

#define WAIT_MS 100 /* until another process that runs the operation is asked about again */

static Deadline soon(void)
{
    return deadline_in_ms(APP_COMMAND_MS);
}

/* One chunk, by this process or by another one. */
static ErrorCode bulk_goes_on(Call *call, const char *id, bool *ret_ended, Error *reterr)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    BulkStep                  step;
    Bulk                      bulk;
    bool                      ran;

    TRY(bulk_step(call->pool, soon(), arena, id, &ran, &step, reterr));
    if (ran) {
        wake_domains(call, step.wake);
        *ret_ended = step.ended;
        if (!step.ended && step.wait_ms)
            clock_sleep_ms(step.wait_ms);
        return OK;
    }
    TRY(bulk_show(call->pool, soon(), arena, id, &bulk, reterr));
    *ret_ended = strcmp(bulk.state, "running") != 0;
    if (!*ret_ended)
        clock_sleep_ms(WAIT_MS);
    return OK;
}

static ErrorCode bulk_wait(Call *call, const char *id, const char *plural, Error *reterr)
{
    Progress progress;
    bool     ended = false;

    progress_begin(&progress);
    while (!ended) {
        scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
        Bulk                      bulk;

        TRY(bulk_goes_on(call, id, &ended, reterr));
        if (!progress.shown)
            continue;
        TRY(bulk_show(call->pool, soon(), arena, id, &bulk, reterr));
        progress_show(&progress, bulk.matched, plural);
    }
    progress_end(&progress);
    return OK;
}

static void bulk_print(Call *call, const Bulk *bulk, const char *decided)
{
    if (call->json) {
        object_print(bulk_write, call->arena, bulk);
        return;
    }
    printf("%" PRId64 " %s", bulk->decided, decided);
    if (bulk->known)
        printf(", %" PRId64 " had been decided before or had ended", bulk->known);
    if (bulk->refused)
        printf(", %" PRId64 " refused", bulk->refused);
    if (bulk->locked)
        printf(", %" PRId64 " locked", bulk->locked);
    printf("\n");
    if (bulk->refused)
        fprintf(stderr, "refused, for example: %s\n", bulk->refusals);
}

static ErrorCode bulk_ask(Call *call, const BulkNew *bulk, const char *plural, bool *ret_go, Error *reterr)
{
    bool      dry = call_flag(call, "--dry-run") != NULL;
    BulkCount found;

    *ret_go = !dry && call_flag(call, "--yes");
    if (*ret_go)
        return OK;
    TRY(bulk_estimate(call->pool, soon(), call->arena, bulk, &found, reterr));
    if (dry && call->json) {
        printf("{\"count\":%" PRId64 ",\"is_exact\":%s}\n", found.count, found.is_exact ? "true" : "false");
        return OK;
    }
    if (dry) {
        printf("%s%" PRId64 " match\n", found.is_exact ? "" : "at least ", found.count);
        return OK;
    }
    *ret_go = found.count == 0 && found.is_exact; /* there is nothing to confirm */
    if (*ret_go)
        return OK;
    if (found.count == 1 && found.is_exact)
        fprintf(stderr, "1 %.*s matches: add --yes to decide about it\n", (int)strlen(bulk->noun), bulk->noun);
    else
        fprintf(stderr, "%s%" PRId64 " %s match: add --yes to decide about all of them, or --dry-run to count them\n",
                found.is_exact ? "" : "at least ", found.count, plural);
    return fail(reterr, ERR_USAGE, "nothing was done");
}

ErrorCode bulk_run(Call *call, const BulkNew *bulk, const char *plural, const char *decided, Error *reterr)
{
    const char *id;
    Bulk        ended;
    bool        is_new, go;

    TRY(source_must_be_database(call, "--all", reterr));
    TRY(bulk_ask(call, bulk, plural, &go, reterr));
    if (!go)
        return OK;
    TRY(bulk_start(call->pool, soon(), call->arena, bulk, &id, &is_new, reterr));
    TRY(bulk_wait(call, id, plural, reterr));
    TRY(bulk_show(call->pool, soon(), call->arena, id, &ended, reterr));
    bulk_print(call, &ended, decided);
    if (ended.error)
        return fail(reterr, ERR_CONFLICT, "operation %s failed: %s", id, ended.error);
    if (ended.refused)
        return fail(reterr, ERR_CONFLICT, "%" PRId64 " of %" PRId64 " %s were refused", ended.refused, ended.matched,
                    plural);
    if (ended.locked)
        return fail(reterr, ERR_BUSY, "%" PRId64 " of %" PRId64 " %s are locked by other transactions: try again",
                    ended.locked, ended.matched, plural);
    return OK;
}
