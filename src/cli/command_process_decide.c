/*
 * command_process_decide.c - decide about processes, and move them to newer versions: one, or all that match.
 */
#include <stdio.h>

#include "base/writer.h"
#include "cli/command.h"
#include "cli/decision.h"
#include "cli/print.h"
#include "cli/process_bulk.h"
#include "cli/source.h"
#include "process/process_fields.h"

static ErrorCode decide_one(Call *call, const ProcessDecision *decision, Error *reterr)
{
    ProcessName name;
    Decision    made;

    TRY(process_name_read(call, &name, reterr));
    TRY(call_open(call, APP_SCHEMA, reterr));
    TRY(source_process_decide(call, name, decision, &made, reterr));
    return decision_print(call, "process", name.id, &made, reterr);
}

/* status: of the processes that --all means; NULL: any that has not ended. */
static ErrorCode decide(Call *call, ProcessVerb action, const char *status, Error *reterr)
{
    ProcessDecision decision = {.action = action,
                                .actor  = call_operator(call),
                                .reason = call_flag(call, "--reason"),
                                .from   = call_flag(call, "--from")};
    bool            is_all;

    TRY(call_json(call, "--result", &decision.result, reterr));
    TRY(call_one_or_all(call, "process", &is_all, reterr));
    return is_all ? process_bulk_run(call, status, &(ProcessBulk){.decision = &decision}, reterr)
                  : decide_one(call, &decision, reterr);
}

ErrorCode command_process_retry(Call *call, Error *reterr)
{
    return decide(call, PROCESS_RETRY, "WAITING_FOR_TSQ", reterr);
}

ErrorCode command_process_cancel(Call *call, Error *reterr)
{
    return decide(call, call_flag(call, "--compensate") ? PROCESS_COMPENSATE : PROCESS_CANCEL, /* status= */ NULL,
                  reterr);
}

ErrorCode command_process_complete(Call *call, Error *reterr)
{
    return decide(call, PROCESS_COMPLETE, "WAITING_FOR_TSQ", reterr);
}

/* ---- move ---- */

static ErrorCode move_one(Call *call, int version, Error *reterr)
{
    ProcessName   name;
    ProcessMoved *moved;

    TRY(process_name_read(call, &name, reterr));
    TRY(call_open(call, APP_SCHEMA, reterr));
    TRY(process_move(call->pool, deadline_in_ms(APP_COMMAND_MS), /* lock_ms= */ 0, call->arena,
                     (CommandNames){&name.id, &name.domain, 1}, version, call_operator(call),
                     call_flag(call, "--reason"), &moved, reterr));
    TRY(process_moved_check(name.id, version, moved, reterr));
    if (moved->is_new)
        wake_domains(call, moved->domains);
    if (call->json) {
        Writer *writer = print_writer(call->arena);

        process_moved_write(writer, name.id, version, moved);
        print_json(writer);
        return OK;
    }
    if (moved->is_new)
        printf("%s moved from version %d to %d\n", name.id, moved->from_version, version);
    else
        printf("%s has version %d already%s%s\n", name.id, version, moved->operator? ", moved by " : "",
               moved->operator? moved->operator: "");
    return OK;
}

ErrorCode command_process_move(Call *call, Error *reterr)
{
    int64_t version;
    bool    is_all;

    TRY(call_number("--to", call_flag(call, "--to"), 1, PROCESS_VERSION_MAX, 0, &version, reterr));
    if (!version)
        return fail(reterr, ERR_USAGE, "--to is missing: name the version to move to");
    TRY(call_one_or_all(call, "process", &is_all, reterr));
    if (!is_all)
        return move_one(call, (int)version, reterr);
    return process_bulk_run(call, /* status= */ NULL,
                            &(ProcessBulk){.version = (int)version, .reason = call_flag(call, "--reason")}, reterr);
}
