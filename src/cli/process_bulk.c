/*
 * process_bulk.c - see process_bulk.h.
 */
#include "cli/process_bulk.h"

#include <inttypes.h>
#include <string.h>

#include "base/uuid.h"
#include "base/writer.h"
#include "cli/decision.h"
#include "cli/print.h"
#include "cli/progress.h"
#include "cli/source.h"

#define REFUSALS_SHOWN 10
#define CHUNK          500
#define LOCKED_MS      5000 /* so long are processes repeated that other transactions have locked */
#define LOCKED_PAUSE   100  /* ms */
#define MOVE_MS        100  /* a transaction that moves processes should end by then */
#define MOVE_MAX       64   /* processes in it */

/* Processes that other transactions have locked. */
struct LockedList {
    char ids[2 * CHUNK][UUID_TEXT_SIZE];
    char domains[2 * CHUNK][PROCESS_DOMAIN_MAX + 1];
    int  count;
};

static ErrorCode bulk_filter(Call *call, const char *status, ProcessFilter *ret_filter, Error *reterr)
{
    const char *given = call_flag(call, "--status");

    if (given && status && strcmp(given, status) != 0)
        return fail(reterr, ERR_USAGE, "--status must be %s here, got \"%.40s\"", status, given);
    TRY(process_filter_read(call, ret_filter, reterr));
    ret_filter->status = given ? given : status;
    ret_filter->limit  = CHUNK;
    return OK;
}

static void locked_add(LockedList *list, CommandNames names, int index)
{
    snprintf(list->ids[list->count], sizeof list->ids[0], "%s", names.ids[index]);
    snprintf(list->domains[list->count++], sizeof list->domains[0], "%s", names.domains[index]);
}

/* One that is locked is repeated later. The first refusals are shown, all are counted. */
static void bulk_count(ProcessBulk *bulk, CommandNames names, int index, ErrorCode code, bool is_new,
                       const Error *error)
{
    if (code == OK) {
        bulk->decided += is_new;
        bulk->known += !is_new;
    } else if (code == ERR_BUSY) {
        locked_add(bulk->locked, names, index);
    } else if (++bulk->refused <= REFUSALS_SHOWN) {
        fprintf(stderr, "%s\n", error->text);
    }
}

/* Among several, one that is locked has a verdict; one alone is waited for. */
static int lock_ms(CommandNames names)
{
    return names.count == 1 ? LOCKED_PAUSE : 0;
}

static bool bulk_is_locked(ProcessBulk *bulk, CommandNames names, ErrorCode code)
{
    if (code != ERR_BUSY || names.count > 1)
        return false;
    locked_add(bulk->locked, names, 0);
    return true;
}

static ErrorCode bulk_decide(Call *call, Arena *arena, CommandNames names, ProcessBulk *bulk, Error *reterr)
{
    Decision *made;
    ErrorCode code = process_decide(call->pool, deadline_in_ms(APP_COMMAND_MS), lock_ms(names), arena, names,
                                    bulk->decision, &made, reterr);

    if (code != OK)
        return bulk_is_locked(bulk, names, code) ? OK : code;
    wake_domains(call, made->wake);
    for (int i = 0; i < names.count; i++) {
        Error error = {0};

        code = decision_check("process", names.ids[i], &made[i], &error);
        bulk_count(bulk, names, i, code, made[i].is_new, &error);
    }
    return OK;
}

static ErrorCode bulk_move(Call *call, Arena *arena, CommandNames names, ProcessBulk *bulk, Error *reterr)
{
    const char   *woken = NULL;
    ProcessMoved *moved;
    ErrorCode     code = process_move(call->pool, deadline_in_ms(APP_COMMAND_MS), lock_ms(names), arena, names,
                                      bulk->version, call_operator(call), bulk->reason, &moved, reterr);

    if (code != OK)
        return bulk_is_locked(bulk, names, code) ? OK : code;
    for (int i = 0; i < names.count; i++) {
        Error error = {0};

        code = process_moved_check(names.ids[i], bulk->version, &moved[i], &error);
        bulk_count(bulk, names, i, code, moved[i].is_new, &error);
        if (!moved[i].is_new || (woken && strcmp(names.domains[i], woken) == 0))
            continue;
        wake_domains(call, moved[i].domains);
        woken = names.domains[i];
    }
    return OK;
}

/* How long a process takes depends on its records, so the next transaction has more processes if this one was short, and fewer if it was long. */
static ErrorCode bulk_move_all(Call *call, Arena *arena, CommandNames names, ProcessBulk *bulk, Error *reterr)
{
    for (int from = 0, count; from < names.count; from += count) {
        Mono begin = clock_mono();

        count = names.count - from < bulk->move_count ? names.count - from : bulk->move_count;
        TRY(bulk_move(call, arena, (CommandNames){names.ids + from, names.domains + from, count}, bulk, reterr));
        int64_t took_ms = mono_ms_between(begin, clock_mono());
        if (took_ms > MOVE_MS && bulk->move_count > 1)
            bulk->move_count /= 2;
        else if (took_ms < MOVE_MS / 2 && bulk->move_count < MOVE_MAX)
            bulk->move_count *= 2;
    }
    return OK;
}

static ErrorCode bulk_do(Call *call, Arena *arena, CommandNames names, ProcessBulk *bulk, Error *reterr)
{
    return bulk->decision ? bulk_decide(call, arena, names, bulk, reterr)
                          : bulk_move_all(call, arena, names, bulk, reterr);
}

/* One chunk: what has ended by now is left out. */
static ErrorCode bulk_chunk(Call *call, ProcessFilter *filter, ProcessBulk *bulk, Error *reterr)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT * 8);
    Process                  *list;
    const char               *ids[CHUNK], *domains[CHUNK];
    CommandNames              names = {ids, domains, 0};
    int                       count;

    TRY(process_list(call->pool, deadline_in_ms(APP_COMMAND_MS), arena, filter, &list, &count, &filter->before,
                     reterr));
    for (int i = 0; i < count; i++) {
        if (command_status_constant(list[i].status) && strcmp(list[i].status, "PENDING") != 0 &&
            strcmp(list[i].status, "IN_PROGRESS") != 0)
            continue; /* COMPLETED, FAILED, CANCELED */
        if (strcmp(list[i].status, "COMPENSATED") == 0)
            continue;
        ids[names.count]       = list[i].process_id;
        domains[names.count++] = list[i].domain;
    }
    bulk->matched += names.count;
    if (names.count == 0 || call_flag(call, "--dry-run"))
        return OK;
    return bulk_do(call, arena, names, bulk, reterr);
}

/* Once more about those that were locked: CHUNK at a time. */
static ErrorCode bulk_repeat_once(Call *call, ProcessBulk *bulk, Error *reterr)
{
    scoped(arena_free) Arena *arena  = arena_new(ARENA_BYTES_DEFAULT * 8);
    LockedList               *locked = bulk->locked;
    const char               *ids[2 * CHUNK], *domains[2 * CHUNK];
    int                       count = locked->count;

    for (int i = 0; i < count; i++) {
        ids[i]     = arena_text(arena, locked->ids[i]);
        domains[i] = arena_text(arena, locked->domains[i]);
    }
    locked->count = 0;
    for (int from = 0; from < count; from += CHUNK)
        TRY(bulk_do(call, arena,
                    (CommandNames){ids + from, domains + from, count - from < CHUNK ? count - from : CHUNK}, bulk,
                    reterr));
    return OK;
}

/* Until none is locked, or for LOCKED_MS; then which are left. */
static ErrorCode bulk_repeat(Call *call, ProcessBulk *bulk, Error *reterr)
{
    Deadline deadline = deadline_in_ms(LOCKED_MS);

    while (bulk->locked->count && !deadline_passed(deadline)) {
        clock_sleep_ms(LOCKED_PAUSE);
        TRY(bulk_repeat_once(call, bulk, reterr));
    }
    for (int i = 0; i < bulk->locked->count; i++)
        fprintf(stderr, "process %s is locked by another transaction: it was left as it is\n", bulk->locked->ids[i]);
    bulk->left += bulk->locked->count;
    bulk->locked->count = 0;
    return OK;
}

static const char *const decided_words[] = {[PROCESS_RETRY]      = "queued again",
                                            [PROCESS_CANCEL]     = "canceled",
                                            [PROCESS_COMPENSATE] = "to be compensated",
                                            [PROCESS_COMPLETE]   = "completed"};

static void bulk_print(Call *call, const ProcessBulk *bulk)
{
    if (call->json) {
        Writer *writer = print_writer(call->arena);

        writer_object(writer, NULL);
        writer_i64(writer, "matched", bulk->matched);
        writer_i64(writer, "decided", bulk->decided);
        writer_i64(writer, "known", bulk->known);
        writer_i64(writer, "refused", bulk->refused);
        writer_i64(writer, "locked", bulk->left);
        writer_end(writer);
        print_json(writer);
    } else if (call_flag(call, "--dry-run")) {
        printf("%" PRId64 " match\n", bulk->matched);
    } else {
        printf("%" PRId64 " %s", bulk->decided, bulk->decision ? decided_words[bulk->decision->action] : "moved");
        if (bulk->known)
            printf(", %" PRId64 " %s", bulk->known,
                   bulk->decision ? "had been decided before" : "had this version already");
        if (bulk->refused)
            printf(", %" PRId64 " refused", bulk->refused);
        if (bulk->left)
            printf(", %" PRId64 " locked", bulk->left);
        printf("\n");
    }
}

ErrorCode process_bulk_run(Call *call, const char *status, ProcessBulk *bulk, Error *reterr)
{
    ProcessFilter filter;
    Progress      progress;

    if (!call_flag(call, "--yes") && !call_flag(call, "--dry-run"))
        return fail(reterr, ERR_USAGE,
                    "nothing was done: add --yes to decide about all that match, or --dry-run to count them");
    TRY(bulk_filter(call, status, &filter, reterr));
    TRY(call_open(call, APP_SCHEMA, reterr));
    TRY(source_must_be_database(call, "--all", reterr));
    domain_note(call, PROCESS_DOMAIN_PREFIX, filter.domain);
    progress_begin(&progress);
    bulk->locked     = arena_array(call->arena, LockedList, 1);
    bulk->move_count = 8;
    do {
        TRY(bulk_chunk(call, &filter, bulk, reterr));
        progress_show(&progress, bulk->matched, "processes");
        if (!filter.before || bulk->locked->count > CHUNK) /* space for the next chunk */
            TRY(bulk_repeat(call, bulk, reterr));
    } while (filter.before);
    progress_end(&progress);
    bulk_print(call, bulk);
    if (bulk->refused)
        return fail(reterr, ERR_CONFLICT, "%" PRId64 " of %" PRId64 " processes were refused", bulk->refused,
                    bulk->matched);
    if (bulk->left)
        return fail(reterr, ERR_BUSY,
                    "%" PRId64 " of %" PRId64 " processes are locked by other transactions: try again", bulk->left,
                    bulk->matched);
    return OK;
}
