/*
 * answers.c - see answers.h.
 */
#include "schedule/answers.h"

#include "schedule/schedule.h"

#include "base/answer_field.h"

/* clang-format off */
#define SCHEDULE_FIELDS \
    TEXT("name"), TEXT("domain"), TEXT("type"), BOOL("process", .help = "it starts processes, else it sends commands"), \
    TEXT("cron", .nullable = true), TEXT("timezone", .nullable = true, .help = "of cron"), \
    JSON("every_s", .nullable = true, .help = "a number"), JSON("jitter_s", .help = "a number"), \
    TEXT("missed", .words = schedule_missed), TEXT("overlap", .words = schedule_overlaps), \
    TEXT("status", .words = schedule_statuses), \
    TIME("next_at", .nullable = true, .help = "null: paused"), \
    TIME("last_at", .nullable = true, .help = "the last time that fired"), \
    UUID("last_id", .nullable = true, .help = "the last command or process"), \
    TIME("skipped_at", .nullable = true, .help = "the last time that was skipped, because the last command had not ended"), \
    TIME("failing_since", .nullable = true), TEXT("error", .nullable = true, .help = "why it cannot fire"), \
    TIME("created_at"), TIME("changed_at")

static const AnswerField schedule_fields[] = {
    SCHEDULE_FIELDS, JSON("payload", .nullable = true, .help = "of each command, or the state of each process")};
TABLE(schedule, "Schedule");
static const AnswerField schedule_line_fields[] = {SCHEDULE_FIELDS};
static TABLE(schedule_line, "ScheduleLine");
static const AnswerField schedules_fields[] = {ROWS("items", schedule_line), NEXT_CURSOR};
TABLE(schedules, "Schedules");

static const AnswerField schedule_time_fields[] = {
    TIME("at"), TIME("due_at", .help = "the same and its jitter"),
    TEXT("local", .help = "what clocks in its time zone show; UTC without one")};
static TABLE(schedule_time, "ScheduleTime");
static const AnswerField schedule_times_fields[] = {ROWS("items", schedule_time)};
TABLE(schedule_times, "ScheduleTimes");

static const AnswerField schedule_run_fields[] = {UUID("command_id", .help = "of the command or process that was sent")};
TABLE(schedule_run, "ScheduleRun");
/* clang-format on */
