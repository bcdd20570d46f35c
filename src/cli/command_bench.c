/*
 * command_bench.c - pawl bench: reads the flags, prints the report, and handles Ctrl-C, because the temporary database must be dropped then as well.
 */
#include <assert.h>
#include <signal.h>
#include <string.h>

#include "base/sync.h"
#include "base/writer.h"
#include "bench/bench.h"
#include "cli/command.h"
#include "cli/print.h"
#include "cli/progress.h"

#define WATCH_MS 200

/* ---- flags ---- */

static ErrorCode options_read(const Call *call, const char *name, BenchOptions *ret_options, Error *reterr)
{
    for (int i = 0; i < bench_option_count; i++) {
        const BenchOption *option = &bench_options[i];
        int64_t           *value  = (int64_t *)(void *)((char *)ret_options + option->offset);

        if (strcmp(option->bench, name) == 0)
            TRY(call_number(option->flag, call_flag(call, option->flag), option->min, option->max, option->fallback,
                            value, reterr));
    }
    return OK;
}

static ErrorCode section_value(const Call *call, const BenchSection *section, int64_t *ret_value, Error *reterr)
{
    switch (section->kind) {
    case BENCH_SWITCH:
        break;
    case BENCH_NUMBER:
        return call_number(section->flag, call_flag(call, section->flag), section->min, section->max, 0, ret_value,
                           reterr);
    case BENCH_TIME:
        TRY(call_duration(call, section->flag, 0, ret_value, reterr));
        if (*ret_value < section->min || *ret_value > section->max)
            return fail(reterr, ERR_USAGE, "%s must be a duration from %llds to %lldh, got \"%.60s\"", section->flag,
                        (long long)(section->min / 1000), (long long)(section->max / 3600000),
                        call_flag(call, section->flag));
    }
    return OK;
}

/* The sections that are asked for, in the order of the table; the one without a flag when there is none. */
typedef struct {
    const BenchSection *sections[COMMAND_FLAGS_MAX];
    int64_t             values[COMMAND_FLAGS_MAX];
    int                 count;
} Plan;

/* Does no section read the option of this flag? */
static bool option_is_unread(const Plan *plan, const char *flag)
{
    for (int i = 0; i < plan->count; i++) {
        const char *unread = plan->sections[i]->unread;
        const char *found  = unread ? strstr(unread, flag) : NULL;

        if (!found || (found[strlen(flag)] != '\0' && found[strlen(flag)] != ' '))
            return false;
    }
    return true;
}

static ErrorCode options_check(const Call *call, const char *name, const Plan *plan, Error *reterr)
{
    assert(plan->count > 0);
    for (int i = 0; i < bench_option_count; i++) {
        const BenchOption *option = &bench_options[i];

        if (strcmp(option->bench, name) == 0 && call_flag(call, option->flag) && option_is_unread(plan, option->flag))
            return fail(reterr, ERR_USAGE, "%s has no effect %s%s: see pawl bench %s --help", option->flag,
                        plan->sections[0]->flag ? "with " : "without a flag that says what to measure",
                        plan->sections[0]->flag ? plan->sections[0]->flag : "", name);
    }
    return OK;
}

static ErrorCode plan_make(const Call *call, const char *name, Plan *ret_plan, Error *reterr)
{
    *ret_plan = (Plan){0};
    for (int i = 0; i < bench_section_count; i++) {
        const BenchSection *section = &bench_sections[i];

        if (strcmp(section->bench, name) != 0 || !section->flag || !call_flag(call, section->flag))
            continue;
        TRY(section_value(call, section, &ret_plan->values[ret_plan->count], reterr));
        ret_plan->sections[ret_plan->count++] = section;
    }
    for (int i = 0; i < bench_section_count && ret_plan->count == 0; i++)
        if (strcmp(bench_sections[i].bench, name) == 0 && !bench_sections[i].flag)
            ret_plan->sections[ret_plan->count++] = &bench_sections[i];
    return OK;
}

/* ---- signals and the live line, on a thread of its own ---- */

typedef struct {
    Bench      *bench;
    atomic_bool ended;
    pthread_t   thread;
} Watch;

static void signals_fill(sigset_t *ret_set)
{
    sigemptyset(ret_set);
    sigaddset(ret_set, SIGINT);
    sigaddset(ret_set, SIGTERM);
    sigaddset(ret_set, SIGHUP);
}

static void *watch_run(void *context)
{
    Watch          *watch = context;
    struct timespec pause = {.tv_nsec = WATCH_MS * NS_PER_MS};
    Progress        progress;
    sigset_t        set;

    signals_fill(&set);
    progress_begin(&progress);
    while (!atomic_load(&watch->ended)) {
        char more[96];

        if (sigtimedwait(&set, NULL, &pause) > 0)
            atomic_store(&watch->bench->stopping, true);
        snprintf(more, sizeof more, ": %s", atomic_load(&watch->bench->what));
        progress_show_more(&progress, atomic_load(&watch->bench->done), "commands", more);
    }
    progress_end(&progress);
    return NULL;
}

static void watch_end(Watch *watch)
{
    atomic_store(&watch->ended, true);
    thread_join(watch->thread);
}

/* ---- the report for people ---- */

static const char *number_text(Arena *arena, Unit unit, double value)
{
    return arena_print(arena, "%.*f", unit_rows[unit].decimals, value);
}

static void figures_print(Arena *arena, const Report *report)
{
    static const char *const head[] = {"section", "figure", ">median", "unit", "runs", NULL};
    Table                    table;

    table_init(&table, arena, head);
    for (int i = 0; i < report->figure_count; i++) {
        const Figure *figure = &report->figures[i];
        Text          runs;

        text_init(&runs, arena, TEXT_MAX_LINE);
        for (int run = 0; run < figure->count; run++)
            text_print(&runs, "%s%s", run ? " " : "", number_text(arena, figure->unit, figure->runs[run]));
        table_cell(&table, figure->section);
        table_cell(&table, figure->name);
        table_cell(&table, number_text(arena, figure->unit, figure_median(figure)));
        table_cell(&table, unit_rows[figure->unit].text);
        table_cell(&table, text_string(&runs));
    }
    table_print(&table, "nothing was measured");
}

static void windows_print(Arena *arena, const Report *report)
{
    static const char *const head[] = {"section",       ">until s",      ">offered/s",    ">done/s",       ">backlog",
                                       ">start p50 ms", ">start p99 ms", ">claim p50 ms", ">claim p99 ms", NULL};
    Table                    table;

    table_init(&table, arena, head);
    for (int i = 0; i < report->window_count; i++) {
        const Window *window = &report->windows[i];
        const double times[] = {window->start_p50_ms, window->start_p99_ms, window->claim_p50_ms, window->claim_p99_ms};

        table_cell(&table, window->section);
        table_cell(&table, arena_print(arena, "%.1f", window->end_s));
        table_cell(&table, number_text(arena, UNIT_RATE, window->offered));
        table_cell(&table, number_text(arena, UNIT_RATE, window->done));
        table_cell_i64(&table, window->backlog);
        for (size_t n = 0; n < COUNT(times); n++)
            table_cell(&table, number_text(arena, UNIT_MS, times[n]));
    }
    printf("\n");
    table_print(&table, "");
}

static void report_print(Arena *arena, const Report *report)
{
    printf("PostgreSQL %s, synchronous_commit %s, fsync %s, %d CPUs\n\n", report->version, report->synchronous_commit,
           report->fsync, report->cpus);
    figures_print(arena, report);
    if (report->window_count)
        windows_print(arena, report);
    for (int i = 0; i < report->judgement_count; i++)
        printf("\n%s: %s: %s\n", report->judgements[i].section, report->judgements[i].good ? "flat" : "NOT flat",
               report->judgements[i].why);
}

/* ---- and for programs ---- */

static void number_json(Writer *writer, Arena *arena, const char *name, Unit unit, double value)
{
    writer_raw(writer, name, number_text(arena, unit, value));
}

static void figures_json(Writer *writer, Arena *arena, const Report *report)
{
    writer_array(writer, "figures");
    for (int i = 0; i < report->figure_count; i++) {
        const Figure *figure = &report->figures[i];

        writer_object(writer, NULL);
        writer_text(writer, "section", figure->section);
        writer_text(writer, "figure", figure->name);
        writer_text(writer, "unit", unit_rows[figure->unit].text);
        number_json(writer, arena, "median", figure->unit, figure_median(figure));
        writer_array(writer, "runs");
        for (int run = 0; run < figure->count; run++)
            number_json(writer, arena, NULL, figure->unit, figure->runs[run]);
        writer_end(writer);
        writer_end(writer);
    }
    writer_end(writer);
}

static void windows_json(Writer *writer, Arena *arena, const Report *report)
{
    writer_array(writer, "windows");
    for (int i = 0; i < report->window_count; i++) {
        const Window *window = &report->windows[i];

        writer_object(writer, NULL);
        writer_text(writer, "section", window->section);
        number_json(writer, arena, "until_s", UNIT_MS, window->end_s);
        number_json(writer, arena, "offered_per_s", UNIT_RATE, window->offered);
        number_json(writer, arena, "done_per_s", UNIT_RATE, window->done);
        writer_i64(writer, "backlog", window->backlog);
        number_json(writer, arena, "start_p50_ms", UNIT_MS, window->start_p50_ms);
        number_json(writer, arena, "start_p99_ms", UNIT_MS, window->start_p99_ms);
        number_json(writer, arena, "claim_p50_ms", UNIT_MS, window->claim_p50_ms);
        number_json(writer, arena, "claim_p99_ms", UNIT_MS, window->claim_p99_ms);
        writer_end(writer);
    }
    writer_end(writer);
    writer_array(writer, "judgements");
    for (int i = 0; i < report->judgement_count; i++) {
        writer_object(writer, NULL);
        writer_text(writer, "section", report->judgements[i].section);
        writer_bool(writer, "flat", report->judgements[i].good);
        writer_text(writer, "why", report->judgements[i].why);
        writer_end(writer);
    }
    writer_end(writer);
}

static void head_json(Writer *writer, const char *name, const Bench *bench)
{
    const Report *report = &bench->report;

    writer_text(writer, "bench", name);
    writer_text(writer, "server_version", report->version);
    writer_text(writer, "synchronous_commit", report->synchronous_commit);
    writer_text(writer, "fsync", report->fsync);
    writer_i64(writer, "cpus", report->cpus);
    writer_object(writer, "options");
    for (int i = 0; i < bench_option_count; i++)
        if (strcmp(bench_options[i].bench, name) == 0)
            writer_i64(writer, bench_options[i].flag + strlen("--"),
                       *(const int64_t *)(const void *)((const char *)&bench->options + bench_options[i].offset));
    writer_end(writer);
    writer_object(writer, "counts");
    writer_i64(writer, "sent", report->counts.sent);
    writer_i64(writer, "ready", report->counts.ready);
    writer_i64(writer, "delayed", report->counts.delayed);
    writer_i64(writer, "leased", report->counts.leased);
    writer_i64(writer, "completed", report->counts.completed);
    writer_end(writer);
}

static void report_json(Call *call, const char *name, const Bench *bench, bool complete)
{
    Writer *writer = print_writer(call->arena);

    writer_object(writer, NULL);
    head_json(writer, name, bench);
    writer_bool(writer, "complete", complete);
    figures_json(writer, call->arena, &bench->report);
    windows_json(writer, call->arena, &bench->report);
    writer_end(writer);
    print_json(writer);
}

/* ---- the command ---- */

static ErrorCode plan_run(Bench *bench, const Plan *plan, Error *reterr)
{
    Watch     watch = {.bench = bench};
    ErrorCode code  = OK;

    watch.thread = thread_start("watch", watch_run, &watch);
    for (int i = 0; i < plan->count && code == OK; i++)
        code = bench_run(bench, plan->sections[i], plan->values[i], reterr);
    watch_end(&watch);
    return code;
}

ErrorCode command_bench(Call *call, Error *reterr)
{
    const char  *name    = call->verb;
    Bench       *bench   = arena_alloc(call->arena, sizeof *bench);
    BenchOptions options = {0};
    Plan         plan;
    sigset_t     set;
    ErrorCode    code;

    TRY(options_read(call, name, &options, reterr));
    TRY(plan_make(call, name, &plan, reterr));
    TRY(options_check(call, name, &plan, reterr));
    signals_fill(&set);
    pthread_sigmask(SIG_BLOCK, &set, NULL); /* before the first thread: only the watch waits for them */
    signal(SIGPIPE, SIG_IGN);
    TRY(call_open(call, APP_POOL, reterr));
    bench_init(bench, call->app->database_url, call->app->settings.listen_database_url, call->arena);
    bench->options = options;
    code           = plan_run(bench, &plan, reterr);
    if (code != OK && bench->report.figure_count + bench->report.window_count == 0)
        return code;
    if (call->json)
        report_json(call, name, bench, code == OK);
    else
        report_print(call->arena, &bench->report);
    return code;
}
