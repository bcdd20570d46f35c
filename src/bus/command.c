/*
 * command.c - see command.h.
 */
#include "bus/command.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "bus/answers.h"
#include "pg/tx.h"
#include "sql.h"

#define LIST_MAX 1000

DB_SHAPE(command, Command, COMMAND_COLUMNS);

DB_SHAPE(decision, Decision, DECISION_COLUMNS);

DB_SHAPE(command_shown, CommandShown, COMMAND_SHOWN_COLUMNS);

DB_SHAPE(work_left, WorkLeft, WORK_LEFT_COLUMNS);

const char *const command_statuses[] = {"PENDING", "IN_PROGRESS", "IN_TSQ", "COMPLETED", "FAILED", "CANCELED", NULL};

const char *command_status_constant(const char *status)
{
    const char *const *word = command_statuses;

    while (status && *word && strcmp(*word, status) != 0)
        word++;
    return status ? *word : NULL;
}

static TxOptions reading(const char *name, Deadline deadline, Arena *arena)
{
    return (TxOptions){.name = name, .deadline = deadline, .arena = arena, .read_only = true};
}

/* A repeated decision changes nothing and returns the same, so a run whose commit was lost is repeated. */
static TxOptions deciding(const char *name, Deadline deadline, int lock_ms, Arena *arena)
{
    return (TxOptions){.name = name, .deadline = deadline, .lock_ms = lock_ms, .arena = arena, .keyed = true};
}

ErrorCode command_status_check(const char *status, Error *reterr)
{
    const char *near;
    size_t      count = COUNT(command_statuses) - 1;

    for (size_t i = 0; i < count && status; i++)
        if (strcmp(command_statuses[i], status) == 0)
            return OK;
    if (!status)
        return OK;
    near = text_nearest(status, command_statuses, count);
    return fail(reterr, ERR_INVALID,
                "status \"%.40s\" is unknown%s%s%sPENDING, IN_PROGRESS, IN_TSQ, COMPLETED, FAILED or CANCELED", status,
                near ? ", did you mean \"" : "", near ? near : "", near ? "\"? It must be " : "; it must be ");
}

ErrorCode command_show(Pool *pool, Deadline deadline, Arena *arena, const char *command_id, const char *domain,
                       const char **ret_json, Error *reterr)
{
    TxOptions   options = reading("command_show", deadline, arena);
    const char *json;

    TRY(db_call(pool, &options, sql_bus_command_show, DB_ARGS(db_uuid(command_id), db_text(domain)), &db_text_shape,
                &json, reterr));
    if (!json)
        return fail(reterr, ERR_NOT_FOUND, "command %s not found%s%s", command_id, domain ? " in domain " : "",
                    domain ? domain : "");
    *ret_json = json;
    return OK;
}

ErrorCode command_list(Pool *pool, Deadline deadline, Arena *arena, const CommandFilter *filter, Command **ret_list,
                       int *ret_count, int64_t *ret_next, Error *reterr)
{
    TxOptions options = reading("command_list", deadline, arena);
    void     *rows;
    int       count;

    TRY(command_status_check(filter->status, reterr));
    if (filter->limit < 1 || filter->limit > LIST_MAX)
        return fail(reterr, ERR_INVALID, "limit must be an integer from 1 to %d, got %d", LIST_MAX, filter->limit);
    TRY(db_call_many(pool, &options, sql_bus_command_list,
                     DB_ARGS(db_text(filter->domain), db_text(filter->status), db_text(filter->type),
                             db_i64(filter->before ? filter->before : INT64_MAX), db_i32(filter->limit),
                             db_i32(COMMAND_PAGE_ROWS), db_text(filter->since), db_text(filter->until),
                             db_uuid(filter->batch_id), db_uuid(filter->command_id), db_text(filter->correlation_id),
                             db_text(filter->order_key), db_bound(arena, filter->bound)),
                     &command_shape, &rows, &count, reterr));
    *ret_next  = db_page_next(rows, sizeof(Command), filter->limit, &count);
    *ret_list  = rows;
    *ret_count = count;
    return OK;
}

ErrorCode command_count(Pool *pool, Deadline deadline, const CommandFilter *filter, int64_t *ret_count, Error *reterr)
{
    scoped(arena_free) Arena *arena   = arena_new(ARENA_BYTES_DEFAULT);
    TxOptions                 options = reading("command_count", deadline, arena);

    TRY(command_status_check(filter->status, reterr));
    TRY(db_call(pool, &options, sql_bus_command_count,
                DB_ARGS(db_text(filter->domain), db_text(filter->status), db_text(filter->type)), &db_i64_shape,
                ret_count, reterr));
    return OK;
}

ErrorCode work_left(Pool *pool, Deadline deadline, const char *domain, const char *const *types, WorkLeft *ret_left,
                    Error *reterr)
{
    scoped(arena_free) Arena *arena   = arena_new(ARENA_BYTES_DEFAULT);
    TxOptions                 options = reading("work_left", deadline, arena);
    int                       count   = 0;

    while (types && types[count])
        count++;
    return db_call(pool, &options, sql_bus_work_left,
                   DB_ARGS(db_text(domain), types ? db_texts(arena, types, count) : db_null()), &work_left_shape,
                   ret_left, reterr);
}

ErrorCode command_numbers_in(Pool *pool, Deadline deadline, PoolWish wish, Arena *arena, const char *const *domains,
                             const char *const *ids, int count, int64_t **ret_numbers, Error *reterr)
{
    TxOptions options = reading("command_numbers", deadline, arena);
    int       got;

    options.urgent  = wish == POOL_URGENT;
    options.soon    = wish == POOL_SOON;
    options.prepare = true;
    TRY(db_call_many(pool, &options, sql_bus_command_numbers,
                     DB_ARGS(db_texts(arena, domains, count), db_uuids(arena, ids, count)), &db_i64_shape, ret_numbers,
                     &got, reterr));
    assert(got == count);
    return OK;
}

ErrorCode command_numbers(Pool *pool, Deadline deadline, Arena *arena, const char *domain, const char *const *ids,
                          int count, int64_t **ret_numbers, Error *reterr)
{
    const char **domains = arena_array(arena, const char *, count);

    for (int i = 0; i < count; i++)
        domains[i] = domain;
    return command_numbers_in(pool, deadline, /* wish= */ 0, arena, domains, ids, count, ret_numbers, reterr);
}

ErrorCode command_domains(Pool *pool, Deadline deadline, Arena *arena, const char *command_id, const char ***ret_names,
                          int *ret_count, Error *reterr)
{
    TxOptions options = reading("command_domains", deadline, arena);

    return db_call_many(pool, &options, sql_bus_command_domains, DB_ARGS(db_uuid(command_id)), &db_text_shape,
                        ret_names, ret_count, reterr);
}

ErrorCode commands_show(Pool *pool, Deadline deadline, Arena *arena, const int64_t *ids, int count,
                        const CommandShown **ret_list, int *ret_count, Error *reterr)
{
    TxOptions options = reading("commands_show", deadline, arena);

    options.prepare = true;
    return db_call_many(pool, &options, sql_bus_commands_show,
                        DB_ARGS(db_i64s(arena, ids, count), db_i64(COMMANDS_SHOWN_BYTES)), &command_shown_shape,
                        ret_list, ret_count, reterr);
}

void command_write(Writer *writer, const void *command)
{
    writer_row(writer, &answer_command_line, command);
}

/* ---- decisions ---- */

static DbArg domains_arg(Arena *arena, CommandNames names)
{
    return names.domains ? db_texts(arena, names.domains, names.count) : db_null();
}

ErrorCode decisions_call(Pool *pool, const TxOptions *options, const char *sql, DbArgs args, int count,
                         Decision **ret_list, Error *reterr)
{
    int got;

    TRY(db_call_many(pool, options, sql, args, &decision_shape, ret_list, &got, reterr));
    if (got != count)
        return fail(reterr, ERR_INTERNAL, "%d decisions were sent and %d returned", count, got);
    return OK;
}

ErrorCode command_cancel(Pool *pool, Deadline deadline, int lock_ms, Arena *arena, CommandNames names,
                         const char *reason, const char *actor, Decision **ret_list, Error *reterr)
{
    TxOptions options = deciding("command_cancel", deadline, lock_ms, arena);

    return decisions_call(pool, &options, sql_bus_command_cancel,
                          DB_ARGS(db_uuids(arena, names.ids, names.count), domains_arg(arena, names), db_text(actor),
                                  db_text(reason)),
                          names.count, ret_list, reterr);
}

ErrorCode tsq_decide(Pool *pool, Deadline deadline, int lock_ms, Arena *arena, CommandNames names,
                     const TsqDecision *decision, Decision **ret_list, Error *reterr)
{
    static const char *const actions[] = {[TSQ_RETRY] = "retry", [TSQ_CANCEL] = "cancel", [TSQ_COMPLETE] = "complete"};
    TxOptions                options   = deciding("tsq_decide", deadline, lock_ms, arena);

    return decisions_call(pool, &options, sql_bus_command_decide,
                          DB_ARGS(db_uuids(arena, names.ids, names.count), domains_arg(arena, names),
                                  db_text(actions[decision->action]), db_text(decision->actor),
                                  db_text(decision->reason), db_jsonb(decision->result)),
                          names.count, ret_list, reterr);
}

static ErrorCode refuse(Error *reterr, const char *sqlstate, const char *text)
{
    (void)fail(reterr, ERR_CONFLICT, "%s", text);
    error_set_sqlstate(reterr, sqlstate);
    return ERR_CONFLICT;
}

ErrorCode decision_check(const char *noun, const char *id, const Decision *decision, Error *reterr)
{
    const char *status = decision->status ? decision->status : "UNKNOWN";
    char        text[sizeof reterr->text], at[WALL_TEXT_SIZE];

    if (strcmp(decision->verdict, "NOT_FOUND") == 0)
        return fail(reterr, ERR_NOT_FOUND, "%s %s not found", noun, id);
    if (strcmp(decision->verdict, "ENDED") == 0)
        return fail(reterr, ERR_CONFLICT, "%s %s has ended already", noun, id);
    if (strcmp(decision->verdict, "LOCKED") == 0)
        return fail(reterr, ERR_BUSY, "%s %s is locked by another transaction: try again", noun, id);
    if (strcmp(decision->verdict, "NOT_IN_TSQ") == 0)
        return fail(reterr, ERR_CONFLICT, "%s %s is not in the troubleshooting queue: it is %s", noun, id, status);
    if (strcmp(decision->verdict, "COMPENSATING") == 0) {
        if (strcmp(status, "WAITING_FOR_TSQ") == 0)
            snprintf(text, sizeof text,
                     "%s %s has a compensation that failed, so it cannot go back to a step: a retry without a step "
                     "retries the compensation, a cancel skips those that are left",
                     noun, id);
        else
            snprintf(text, sizeof text, "%s %s is being compensated: it cannot be canceled without its compensations",
                     noun, id);
        return refuse(reterr, "QP006", text);
    }
    if (strcmp(decision->verdict, "SENT") == 0)
        return fail(
            reterr, ERR_CONFLICT,
            "%s %s has sent a command or child from step \"%s\" on that has not ended: cancel that first, or retry "
            "without --from",
            noun, id, decision->decision);
    if (strcmp(decision->verdict, "NOT_RECORDED") == 0) {
        snprintf(text, sizeof text,
                 "%s %s has not recorded step \"%s\"; a retry without a step continues at the one that failed", noun,
                 id, decision->decision);
        return refuse(reterr, "QP005", text);
    }
    if (strcmp(decision->verdict, "AMBIGUOUS") == 0) {
        snprintf(text, sizeof text, "%s %s is in several domains: %s; name one of them", noun, id, decision->domains);
        return refuse(reterr, "QU005", text);
    }
    if (strcmp(decision->verdict, "DECIDED") == 0) {
        wall_text((Wall){decision->decided_at}, at);
        if (strcmp(decision->decision, "retry") == 0)
            snprintf(text, sizeof text,
                     "%s %s is not in the troubleshooting queue: it is %s, after a retry by %s at %s", noun, id, status,
                     decision->operator, at);
        else
            snprintf(text, sizeof text,
                     "%s %s was decided already: %s by %s at %s; it cannot be changed, and a repetition has the same "
                     "decision, "
                     "operator, reason and result",
                     noun, id, decision->decision, decision->operator, at);
        return refuse(reterr, "QU006", text);
    }
    return OK;
}

const char *decision_status(const Decision *decision)
{
    bool is_repeated = !decision->is_new && decision->status && strcmp(decision->verdict, "PENDING") == 0;

    return is_repeated ? decision->status : decision->verdict;
}

void decision_write(Writer *writer, const char *noun, const char *command_id, const Decision *decision)
{
    char name[40];

    snprintf(name, sizeof name, "%s_id", noun);
    writer_object(writer, NULL);
    writer_text(writer, name, command_id);
    writer_text(writer, "status", decision_status(decision));
    writer_text(writer, "decision", decision->decision);
    writer_text(writer, "operator", decision->operator);
    writer_time(writer, "decided_at", decision->decided_at);
    writer_end(writer);
}

/* ---- a decision as JSON ---- */

static const Field decision_fields[] = {
    DECISION_FIELDS(DecisionRequest),
    {"result", FIELD_JSON, offsetof(DecisionRequest, result), .help = "complete: what the handler would have returned"},
};
const FieldTable decision_table = {"decision", decision_fields, COUNT(decision_fields), sizeof(DecisionRequest)};
