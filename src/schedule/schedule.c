/*
 * schedule.c - asks the functions of sql/schedule/.
 */
#include "schedule/schedule.h"

#include <stddef.h>

#include "bus/send.h"
#include "pg/tx.h"
#include "schedule/metric.h"
#include "sql.h"

#define FIRE_ROWS \
    50 /* schedules in one batch: each has a subtransaction, and other sessions find out slowly about more than 64 */

const char *const schedule_statuses[] = {"active", "paused", "failing", NULL};
const char *const schedule_missed[]   = {"skip", "once", "all", NULL};
const char *const schedule_overlaps[] = {"allow", "skip", "queue", NULL};

DB_SHAPE(schedule, Schedule, SCHEDULE_COLUMNS);
DB_SHAPE(schedule_time, ScheduleTime, SCHEDULE_TIME_COLUMNS);

/* ---- read ---- */

ErrorCode schedule_list(Pool *pool, Deadline deadline, Arena *arena, const ScheduleFilter *filter, Schedule **ret_list,
                        int *ret_count, Error *reterr)
{
    TxOptions options = {.name = "schedule_list", .deadline = deadline, .arena = arena, .read_only = true};

    return db_call_many(pool, &options, sql_schedule_list,
                        DB_ARGS(db_text(filter->domain), db_text(filter->type), db_text(filter->status), db_null(),
                                filter->before ? db_i64(filter->before) : db_null(), db_i32(filter->limit)),
                        &schedule_shape, ret_list, ret_count, reterr);
}

ErrorCode schedule_find(Pool *pool, Deadline deadline, Arena *arena, const char *name, Schedule *ret_schedule,
                        Error *reterr)
{
    TxOptions options = {.name = "schedule_find", .deadline = deadline, .arena = arena, .read_only = true};
    Schedule *list;
    int       count;

    TRY(db_call_many(pool, &options, sql_schedule_show, DB_ARGS(db_text(name)), &schedule_shape, &list, &count,
                     reterr));
    if (count == 0)
        return fail(reterr, ERR_NOT_FOUND, "schedule \"%.100s\" not found", name);
    *ret_schedule = list[0];
    return OK;
}

ErrorCode schedule_next(Pool *pool, Deadline deadline, Arena *arena, const char *name, int count,
                        ScheduleTime **ret_list, int *ret_count, Error *reterr)
{
    TxOptions options = {.name = "schedule_next", .deadline = deadline, .arena = arena, .read_only = true};

    return db_call_many(pool, &options, sql_schedule_next, DB_ARGS(db_text(name), db_i32(count)), &schedule_time_shape,
                        ret_list, ret_count, reterr);
}

/* ---- decide ---- */

static DbArg duration_arg(double seconds)
{
    return seconds > 0 ? db_i64((int64_t)(seconds * 1000 + 0.5)) : db_null();
}

ErrorCode schedule_create(Pool *pool, Deadline deadline, int lock_ms, Arena *arena, const ScheduleRequest *request,
                          bool replace, const ScheduleDecision *decision, const char **ret_done, Error *reterr)
{
    TxOptions options = {
        .name = "schedule_create", .deadline = deadline, .lock_ms = lock_ms, .arena = arena, .keyed = true};

    return db_call(pool, &options, sql_schedule_create,
                   DB_ARGS(db_text(decision->name), db_text(request->domain), db_text(request->type),
                           db_jsonb(request->payload), db_text(request->cron), db_text(request->timezone),
                           duration_arg(request->every_s), duration_arg(request->jitter_s), db_bool(request->process),
                           db_text(request->missed), db_text(request->overlap), db_bool(replace),
                           db_text(decision->operator), db_text(decision->reason)),
                   &db_text_shape, ret_done, reterr);
}

/* Idempotent, so a call whose answer was lost is run again. */
static ErrorCode decide(Pool *pool, Deadline deadline, int lock_ms, const char *sql, const ScheduleDecision *decision,
                        bool *ret_changed, Error *reterr)
{
    scoped(arena_free) Arena *arena   = arena_new(ARENA_BYTES_DEFAULT);
    TxOptions                 options = {
                        .name = "schedule_decide", .deadline = deadline, .lock_ms = lock_ms, .arena = arena, .keyed = true};

    return db_call(pool, &options, sql,
                   DB_ARGS(db_text(decision->name), db_text(decision->operator), db_text(decision->reason)),
                   &db_bool_shape, ret_changed, reterr);
}

ErrorCode schedule_pause(Pool *pool, Deadline deadline, int lock_ms, const ScheduleDecision *decision,
                         bool *ret_changed, Error *reterr)
{
    return decide(pool, deadline, lock_ms, sql_schedule_pause, decision, ret_changed, reterr);
}

ErrorCode schedule_resume(Pool *pool, Deadline deadline, int lock_ms, const ScheduleDecision *decision,
                          bool *ret_changed, Error *reterr)
{
    return decide(pool, deadline, lock_ms, sql_schedule_resume, decision, ret_changed, reterr);
}

ErrorCode schedule_delete(Pool *pool, Deadline deadline, int lock_ms, const ScheduleDecision *decision,
                          bool *ret_changed, Error *reterr)
{
    return decide(pool, deadline, lock_ms, sql_schedule_delete, decision, ret_changed, reterr);
}

#define RAN_COLUMNS(X, T) \
    X(T, UUID, id)        \
    X(T, TEXT, wake)
DB_ROW(Ran, RAN_COLUMNS);
DB_SHAPE(ran, Ran, RAN_COLUMNS);

ErrorCode schedule_run(Pool *pool, Deadline deadline, int lock_ms, Arena *arena, const char *command_id,
                       const ScheduleDecision *decision, const char **ret_wake, Error *reterr)
{
    TxOptions options = {
        .name = "schedule_run", .deadline = deadline, .lock_ms = lock_ms, .arena = arena, .keyed = true};
    Ran ran;

    TRY(db_call(pool, &options, sql_schedule_run,
                DB_ARGS(db_text(decision->name), db_uuid(command_id), db_text(decision->operator),
                        db_text(decision->reason)),
                &ran_shape, &ran, reterr));
    *ret_wake = ran.wake;
    return OK;
}

/* ---- fire ---- */

#define FIRED_COLUMNS(X, T)                 \
    X(T, I32, fired, sent, failed, next_ms) \
    X(T, TEXT, wake)
DB_ROW(Fired, FIRED_COLUMNS);
DB_SHAPE(fired, Fired, FIRED_COLUMNS);

ErrorCode schedules_fire(Pool *pool, Deadline deadline, Arena *arena, int most_ms, int *ret_fired, int *ret_next_ms,
                         const char **ret_wake, Error *reterr)
{
    TxOptions options = {.name = "schedules_fire", .deadline = deadline, .arena = arena, .keyed = true};
    Fired     fired;

    TRY(db_call(pool, &options, sql_schedule_fire, DB_ARGS(db_i32(FIRE_ROWS), db_i32(most_ms)), &fired_shape, &fired,
                reterr));
    metric_add(&schedule_metrics.fired, fired.sent);
    metric_add(&schedule_metrics.failed, fired.failed);
    *ret_fired   = fired.fired;
    *ret_next_ms = fired.next_ms;
    *ret_wake    = fired.wake;
    return OK;
}

/* ---- a schedule as JSON ---- */

/* clang-format off */
#define REQUEST_FIELDS \
    {"domain", FIELD_TEXT, offsetof(ScheduleRequest, domain), .required = true, .length_max = SEND_DOMAIN_MAX, \
     .help = "domain whose workers handle its commands, or domain of its processes"}, \
    {"type", FIELD_TEXT, offsetof(ScheduleRequest, type), .required = true, .length_max = SEND_TYPE_MAX, \
     .help = "type of its commands or processes"}, \
    {"payload", FIELD_JSON, offsetof(ScheduleRequest, payload), .help = "of each command, or the state of each process; {} when absent"}, \
    {"process", FIELD_BOOL, offsetof(ScheduleRequest, process), .help = "it starts processes; false when absent: it sends commands"}, \
    {"cron", FIELD_TEXT, offsetof(ScheduleRequest, cron), .length_max = SCHEDULE_CRON_MAX, \
     .help = "minute, hour, day, month and weekday, or @hourly, @daily, @weekly, @monthly, @yearly; this or every_s"}, \
    {"timezone", FIELD_TEXT, offsetof(ScheduleRequest, timezone), .length_max = SCHEDULE_TIMEZONE_MAX, \
     .help = "of cron, such as Europe/Berlin; UTC when absent"}, \
    {"every_s", FIELD_REAL, offsetof(ScheduleRequest, every_s), .min = 1, .max = SCHEDULE_EVERY_S_MAX, \
     .help = "seconds between two times, counted from 1970-01-01 00:00 UTC; this or cron"}, \
    {"jitter_s", FIELD_REAL, offsetof(ScheduleRequest, jitter_s), .min = 0, .max = SCHEDULE_JITTER_S_MAX, \
     .help = "each time fires up to so many seconds later; 0 when absent"}, \
    {"missed", FIELD_TEXT, offsetof(ScheduleRequest, missed), .length_max = 10, .words = schedule_missed, \
     .help = "what happens to times that passed while nothing fired them: nothing, the last one, the last 100; once when absent"}, \
    {"overlap", FIELD_TEXT, offsetof(ScheduleRequest, overlap), .length_max = 10, .words = schedule_overlaps, \
     .help = "what happens when the last command has not ended: send another one, skip the time, or queue behind it; allow when absent"}

static const Field create_fields[] = {
    {"name", FIELD_TEXT, offsetof(ScheduleRequest, name), .required = true, .length_max = SCHEDULE_NAME_MAX,
     .help = "1 to 100 letters, digits, _ . : -"},
    REQUEST_FIELDS,
};
static const Field replace_fields[] = {REQUEST_FIELDS};
/* clang-format on */
const FieldTable schedule_table         = {"schedule", create_fields, COUNT(create_fields), sizeof(ScheduleRequest)};
const FieldTable schedule_replace_table = {"schedule without name", replace_fields, COUNT(replace_fields),
                                           sizeof(ScheduleRequest)};

/* clang-format off */
#define DECISION_FIELDS \
    {"by", FIELD_TEXT, offsetof(ScheduleDecisionRequest, by), .length_max = 200, .help = "who decides; the key when absent"}, \
    {"reason", FIELD_TEXT, offsetof(ScheduleDecisionRequest, reason), .length_max = 1000, .help = "why"}
static const Field decision_fields[] = {DECISION_FIELDS};
static const Field run_fields[] = {
    DECISION_FIELDS,
    {"command_id", FIELD_UUID, offsetof(ScheduleDecisionRequest, command_id),
     .help = "of the command or process; a repeat with the same id sends nothing; generated when absent"},
};
/* clang-format on */
const FieldTable schedule_decision_table = {"schedule decision", decision_fields, COUNT(decision_fields),
                                            sizeof(ScheduleDecisionRequest)};
const FieldTable schedule_run_table = {"schedule run", run_fields, COUNT(run_fields), sizeof(ScheduleDecisionRequest)};

static void seconds_write(Writer *writer, const char *name, int64_t ms)
{
    if (ms)
        writer_real(writer, name, (double)ms / 1000);
    else
        writer_null(writer, name);
}

static void fields_write(Writer *writer, const Schedule *schedule)
{
    writer_text(writer, "name", schedule->name);
    writer_text(writer, "domain", schedule->domain);
    writer_text(writer, "type", schedule->type);
    writer_bool(writer, "process", schedule->is_process);
    writer_text(writer, "cron", schedule->cron);
    writer_text(writer, "timezone", schedule->timezone);
    seconds_write(writer, "every_s", schedule->every_ms);
    writer_real(writer, "jitter_s", (double)schedule->jitter_ms / 1000);
    writer_text(writer, "missed", schedule->missed);
    writer_text(writer, "overlap", schedule->overlap);
    writer_text(writer, "status", schedule->status);
    writer_time(writer, "next_at", schedule->next_at);
    writer_time(writer, "last_at", schedule->last_at);
    writer_text(writer, "last_id", schedule->last_id);
    writer_time(writer, "skipped_at", schedule->skipped_at);
    writer_time(writer, "failing_since", schedule->failing_since);
    writer_text(writer, "error", schedule->error);
    writer_time(writer, "created_at", schedule->created_at);
    writer_time(writer, "changed_at", schedule->changed_at);
}

void schedule_write(Writer *writer, const void *row)
{
    writer_object(writer, NULL);
    fields_write(writer, row);
    writer_end(writer);
}

void schedule_whole_write(Writer *writer, const void *row)
{
    const Schedule *schedule = row;

    writer_object(writer, NULL);
    fields_write(writer, schedule);
    writer_raw(writer, "payload", schedule->payload);
    writer_end(writer);
}

void schedule_times_write(Writer *writer, const ScheduleTime *list, int count)
{
    writer_object(writer, NULL);
    writer_array(writer, "items");
    for (int i = 0; i < count; i++) {
        writer_object(writer, NULL);
        writer_time(writer, "at", list[i].at);
        writer_time(writer, "due_at", list[i].due_at);
        writer_text(writer, "local", list[i].local);
        writer_end(writer);
    }
    writer_end(writer);
    writer_end(writer);
}
