/*
 * process.c - see process.h; sql/process decides.
 */
#include "process/process.h"

#include <string.h>

#include "base/clock.h"
#include "base/moment.h"
#include "base/reader.h"
#include "base/setting.h"
#include "base/text.h"
#include "bus/offer.h"
#include "pg/tx.h"
#include "process/answers.h"
#include "sql.h"

DB_SHAPE(process, Process, PROCESS_COLUMNS);
DB_SHAPE(signaled, ProcessSignaled, PROCESS_SIGNALED_COLUMNS);

ErrorCode process_status_check(const char *status, Error *reterr)
{
    const char *near;
    size_t      count = 0;

    for (; process_statuses[count]; count++)
        if (status && strcmp(process_statuses[count], status) == 0)
            return OK;
    if (!status)
        return OK;
    near = text_nearest(status, process_statuses, count);
    return fail(reterr, ERR_INVALID,
                "status \"%.40s\" is unknown%s%s%sPENDING, IN_PROGRESS, WAITING_FOR_REPLY, WAITING_FOR_ASYNC, "
                "WAITING_FOR_RETRY, WAITING_FOR_TSQ, COMPENSATING, COMPLETED, FAILED, CANCELED or COMPENSATED",
                status, near ? ", did you mean \"" : "", near ? near : "", near ? "\"? It must be " : "; it must be ");
}

ErrorCode process_type_note(Pool *pool, Deadline deadline, Arena *arena, const char *domain, const char *type,
                            const char **ret_note, Error *reterr)
{
    TxOptions options = {.name = "type", .deadline = deadline, .arena = arena, .read_only = true};

    return db_call(pool, &options, sql_process_type_note, DB_ARGS(db_text(domain), db_text(type)), &db_text_shape,
                   ret_note, reterr);
}

/* ---- start ---- */

static bool domain_is_valid(const char *domain)
{
    size_t length = strlen(domain);

    return length >= 1 && length <= PROCESS_DOMAIN_MAX && !strchr("_.:-", domain[0]) &&
           strspn(domain, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.:-") == length;
}

/* Valid JSON is an object if it begins like one. */
ErrorCode process_state_check(const char *state, Error *reterr)
{
    if (!state)
        return OK;
    if (reader_check(state, strlen(state), reterr) != OK) {
        error_prefix(reterr, "state");
        return reterr->code;
    }
    if (state[strspn(state, " \t\r\n")] != '{')
        return fail(reterr, ERR_INVALID, "state must be a JSON object, got %.60s", state);
    if (strlen(state) > PROCESS_STATE_BYTES_MAX)
        return fail(reterr, ERR_LIMIT, "state must have at most %zu bytes, got %zu", PROCESS_STATE_BYTES_MAX,
                    strlen(state));
    return OK;
}

ErrorCode process_start_item(Arena *arena, const char *type, const char *state, const char *process_id,
                             const char *domain, SendItem *ret_item, Error *reterr)
{
    domain = domain ? domain : PROCESS_DOMAIN_DEFAULT;
    if (!domain_is_valid(domain))
        return fail(reterr, ERR_INVALID,
                    "domain must be 1 to %d letters, digits, \"_\", \".\", \":\" or \"-\", beginning with a letter or "
                    "digit, got \"%.80s\"",
                    PROCESS_DOMAIN_MAX, domain);
    if (strncmp(domain, PROCESS_DOMAIN_PREFIX, strlen(PROCESS_DOMAIN_PREFIX)) == 0)
        return fail(reterr, ERR_INVALID,
                    "domain must not begin with \"" PROCESS_DOMAIN_PREFIX
                    "\", which is the name of its queue on the bus: "
                    "give \"%.80s\"",
                    domain + strlen(PROCESS_DOMAIN_PREFIX));
    TRY(send_check_type("type", type, reterr));
    TRY(process_state_check(state, reterr));
    *ret_item = (SendItem){.domain       = arena_print(arena, PROCESS_DOMAIN_PREFIX "%s", domain),
                           .type         = type,
                           .payload      = state,
                           .command_id   = process_id,
                           .priority     = SEND_DEFAULT,
                           .max_attempts = PROCESS_ATTEMPTS_MAX,
                           .noun         = "process",
                           .payload_noun = "state"};
    return OK;
}

static ErrorCode deadline_action_check(const char *deadline, const char *on_deadline, Error *reterr)
{
    const char *const *word = failure_actions;

    if (!on_deadline)
        return OK;
    if (!deadline)
        return fail(reterr, ERR_INVALID, "on_deadline needs a deadline");
    while (*word && strcmp(*word, on_deadline) != 0)
        word++;
    if (!*word)
        return fail(reterr, ERR_INVALID, "on_deadline must be troubleshoot, compensate or fail, got \"%.60s\"",
                    on_deadline);
    return OK;
}

ErrorCode process_start_deadline(Arena *arena, const char *deadline, const char *on_deadline, SendItem *item,
                                 Error *reterr)
{
    const char *comma = on_deadline ? ", " : "", *action = on_deadline ? on_deadline : "";
    char        time[WALL_TEXT_SIZE];
    int64_t     ms, us;

    TRY(deadline_action_check(deadline, on_deadline, reterr));
    if (!deadline)
        return OK;
    if (setting_duration(deadline, &ms, NULL) == OK && ms >= 1 && ms <= DEFINITION_TIME_MS_MAX) {
        item->attached = arena_print(arena, "%lld ms%s%s", (long long)ms, comma, action);
        return OK;
    }
    if (!moment_parse(deadline, MOMENT_LENIENT, &us))
        return fail(reterr, ERR_INVALID,
                    "deadline must be a duration from 1ms to 3650d, such as 2h, or a time such as "
                    "2026-11-15T10:30:00Z, got \"%.60s\"",
                    deadline);
    wall_text_us((Wall){us}, time);
    item->attached = arena_print(arena, "%s%s%s", time, comma, action);
    return OK;
}

/* ---- read ---- */

ErrorCode process_show(Pool *pool, Deadline deadline, Arena *arena, ProcessName name, const char **ret_json,
                       Error *reterr)
{
    TxOptions   options = {.name = "process_show", .deadline = deadline, .arena = arena, .read_only = true};
    const char *json;

    TRY(db_call(pool, &options, sql_process_show, DB_ARGS(db_uuid(name.id), db_text(name.domain)), &db_text_shape,
                &json, reterr));
    if (!json)
        return fail(reterr, ERR_NOT_FOUND, "process %s not found%s%s", name.id, name.domain ? " in domain " : "",
                    name.domain ? name.domain : "");
    *ret_json = json;
    return OK;
}

ErrorCode process_list(Pool *pool, Deadline deadline, Arena *arena, const ProcessFilter *filter, Process **ret_list,
                       int *ret_count, int64_t *ret_next, Error *reterr)
{
    TxOptions options = {.name = "process_list", .deadline = deadline, .arena = arena, .read_only = true};
    Process  *list;
    int       count;

    TRY(process_status_check(filter->status, reterr));
    if (filter->limit < 1 || filter->limit > PROCESS_LIST_MAX)
        return fail(reterr, ERR_INVALID, "limit must be an integer from 1 to %d, got %d", PROCESS_LIST_MAX,
                    filter->limit);
    TRY(db_call_many(pool, &options, sql_process_list,
                     DB_ARGS(db_text(filter->domain), db_text(filter->type), db_text(filter->status),
                             db_text(filter->step), db_text(filter->text),
                             filter->older_ms ? db_i64(filter->older_ms) : db_null(),
                             filter->before ? db_i64(filter->before) : db_null(), db_i32(filter->limit),
                             db_bound(arena, filter->bound)),
                     &process_shape, &list, &count, reterr));
    *ret_next = 0;
    if (count > 0 && list[count - 1].id == 0) /* the limit of reads ended the page */
        *ret_next = list[--count].last;
    else if (count == filter->limit)
        *ret_next = list[count - 1].last;
    *ret_list  = list;
    *ret_count = count;
    return OK;
}

void process_row_write(Writer *writer, const void *process)
{
    writer_row(writer, &answer_process_line, process);
}

/* ---- responses ---- */

ErrorCode process_signal(Pool *pool, Deadline deadline, int lock_ms, Arena *arena, ProcessName name,
                         const ProcessSignal *signal, ProcessSignaled *ret_signaled, Error *reterr)
{
    TxOptions    options = {.name     = "process_signal",
                            .deadline = deadline,
                            .lock_ms  = lock_ms,
                            .arena    = arena,
                            .keyed    = true,
                            .prepare  = true};
    const char  *payload = signal->payload ? signal->payload : "{}";
    ResumeOffers offers;
    ErrorCode    code;

    if (reader_check(payload, strlen(payload), reterr) != OK) {
        error_prefix(reterr, "payload");
        return reterr->code;
    }
    if (strlen(payload) > PROCESS_STATE_BYTES_MAX)
        return fail(reterr, ERR_LIMIT, "payload must have at most %zu bytes, got %zu", PROCESS_STATE_BYTES_MAX,
                    strlen(payload));
    resume_offers_take(pool, name.domain ? arena_print(arena, PROCESS_DOMAIN_PREFIX "%s", name.domain) : NULL,
                       /* kept= */ 0, arena, &offers);
    code = db_call(pool, &options, sql_process_signal,
                   DB_ARGS(db_uuid(name.id), db_text(signal->name), db_jsonb(payload), db_text(signal->key),
                           db_text(name.domain), db_text(signal->actor), db_text(signal->step),
                           resume_offers_arg(arena, &offers)),
                   &signaled_shape, ret_signaled, reterr);
    resume_offers_end(&offers, code == OK ? ret_signaled->started : NULL);
    return code;
}

const char *process_signal_nearest(Arena *arena, const char *name, const ProcessSignaled *signaled)
{
    size_t       count = 0, size = signaled->expected ? strlen(signaled->expected) : 0;
    char        *text = arena_bytes(arena, signaled->expected ? signaled->expected : "", size), *rest = text, *word;
    const char **names = arena_array(arena, const char *, size + 1);

    while ((word = strtok_r(rest, " ", &rest)))
        names[count++] = word;
    return text_nearest(name, names, count);
}

/* ---- decisions ---- */

ErrorCode process_decide(Pool *pool, Deadline deadline, int lock_ms, Arena *arena, CommandNames names,
                         const ProcessDecision *decision, Decision **ret_list, Error *reterr)
{
    /* The same decision again changes nothing and returns the same row: a retry from a step, which a process may need again at once, by its key. */
    char      key[UUID_TEXT_SIZE];
    TxOptions options = {
        .name = "process_decide", .deadline = deadline, .lock_ms = lock_ms, .arena = arena, .keyed = true};
    DbArg ids = db_uuids(arena, names.ids, names.count), actor = db_text(decision->actor),
          domains = names.domains ? db_texts(arena, names.domains, names.count) : db_null(),
          reason  = db_text(decision->reason);

    switch (decision->action) {
    case PROCESS_RETRY:
        uuid_new(key);
        return decisions_call(pool, &options, sql_process_retry,
                              DB_ARGS(ids, domains, actor, reason, db_text(decision->from), db_uuid(key)), names.count,
                              ret_list, reterr);
    case PROCESS_CANCEL:
        return decisions_call(pool, &options, sql_process_cancel, DB_ARGS(ids, domains, actor, reason), names.count,
                              ret_list, reterr);
    case PROCESS_COMPENSATE:
        return decisions_call(pool, &options, sql_process_compensate, DB_ARGS(ids, domains, actor, reason), names.count,
                              ret_list, reterr);
    case PROCESS_COMPLETE:
        break;
    }
    return decisions_call(pool, &options, sql_process_complete,
                          DB_ARGS(ids, domains, actor, reason, db_jsonb(decision->result)), names.count, ret_list,
                          reterr);
}
