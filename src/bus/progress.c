/*
 * progress.c - see progress.h.
 */
#include "bus/progress.h"

#include <string.h>

#include "base/log.h"
#include "base/reader.h"
#include "base/text.h"
#include "bus/metric.h"
#include "pg/query.h"
#include "pg/tx.h"
#include "sql.h"

#define LINE_PREFIX "pawl: "
#define LINE_ARENA  ((size_t)65536)

const char *const progress_verdicts[] = {
    [PROGRESS_REPORTED] = "reported", [PROGRESS_LOST] = "lost", [PROGRESS_BUSY] = "busy", NULL};

static size_t characters(const char *text)
{
    size_t count = 0;

    for (; *text; text++)
        count += ((unsigned char)*text & 0xC0) != 0x80;
    return count;
}

ErrorCode progress_check(const JobProgress *progress, Error *reterr)
{
    size_t count = progress->text ? characters(progress->text) : 0;

    if (progress->percent != PROGRESS_NONE && (progress->percent < 0 || progress->percent > 100))
        return fail(reterr, ERR_INVALID, "percent must be from 0 to 100, got %d", progress->percent);
    if (progress->text && (count < 1 || count > PROGRESS_CHARACTERS_MAX))
        return fail(reterr, ERR_INVALID, "text must have 1 to %d characters, got %zu", PROGRESS_CHARACTERS_MAX, count);
    if (progress->text && !text_is_utf8(progress->text, strlen(progress->text)))
        return fail(reterr, ERR_INVALID, "text must be UTF-8");
    if (progress->percent == PROGRESS_NONE && !progress->text)
        return fail(reterr, ERR_INVALID, "percent or text must be given");
    return OK;
}

static const char *step_cut(const char *step, Arena *arena)
{
    size_t size = step ? strlen(step) : 0;

    if (size <= PROGRESS_STEP_CHARACTERS)
        return step;
    return arena_bytes(arena, step, text_cut(step, size, PROGRESS_STEP_CHARACTERS));
}

typedef struct {
    const char *step, *attempt, *percent, *text, *at;
} Claimed;

const char *progress_of_step(const char *json, const char *step, Arena *arena)
{
    static const Field fields[] = {
        {"step",    FIELD_TEXT, offsetof(Claimed, step)   },
        {"attempt", FIELD_JSON, offsetof(Claimed, attempt)},
        {"percent", FIELD_JSON, offsetof(Claimed, percent)},
        {"text",    FIELD_JSON, offsetof(Claimed, text)   },
        {"at",      FIELD_JSON, offsetof(Claimed, at)     },
    };
    static const FieldTable table = {"progress", fields, COUNT(fields), sizeof(Claimed)};
    Claimed                 claimed;

    if (!json || reader_object(json, strlen(json), &table, arena, &claimed, NULL) != OK)
        return NULL;
    return claimed.step && strcmp(claimed.step, step_cut(step, arena)) == 0 ? json : NULL;
}

/* ---- writing them ---- */

static ProgressVerdict verdict_read(const char *word)
{
    if (word && strcmp(word, "REPORTED") == 0)
        return PROGRESS_REPORTED;
    return word && strcmp(word, "BUSY") == 0 ? PROGRESS_BUSY : PROGRESS_LOST;
}

ErrorCode progress_report(Pool *pool, Deadline deadline, Arena *arena, ProgressItem *items, int count, Error *reterr)
{
    TxOptions options = {
        .name = "progress", .deadline = deadline, .arena = arena, .keyed = true, .urgent = true, .prepare = true};
    int64_t           *ids      = arena_array(arena, int64_t, count);
    int64_t           *tokens   = arena_array(arena, int64_t, count);
    const char       **percents = arena_array(arena, const char *, count);
    const char       **texts    = arena_array(arena, const char *, count);
    const char       **steps    = arena_array(arena, const char *, count);
    const char *const *verdicts;
    int                row_count;

    for (int i = 0; i < count; i++) {
        const JobProgress *progress = &items[i].progress;

        ids[i]      = items[i].id;
        tokens[i]   = items[i].token;
        percents[i] = progress->percent == PROGRESS_NONE ? NULL : arena_print(arena, "%d", progress->percent);
        texts[i]    = progress->text;
        steps[i]    = step_cut(progress->step, arena);
    }
    metric_add(&bus_metrics.progress_calls, 1);
    TRY(db_call_many(pool, &options, sql_bus_report_progress,
                     DB_ARGS(db_i64s(arena, ids, count), db_i64s(arena, tokens, count),
                             db_texts(arena, percents, count), db_texts(arena, texts, count),
                             db_texts(arena, steps, count)),
                     &db_text_shape, &verdicts, &row_count, reterr));
    if (row_count != count)
        return fail(reterr, ERR_INTERNAL, "%d reports were written and %d returned", count, row_count);
    for (int i = 0; i < count; i++)
        items[i].verdict = verdict_read(verdicts[i]);
    return OK;
}

/* ---- lines of a program ---- */

typedef struct {
    int64_t     percent;
    bool        has_percent;
    const char *text;
} Line;

static const Field line_fields[] = {
    {"percent", FIELD_I64, offsetof(Line, percent), .max = 100, .is_set = offsetof(Line, has_percent)},
    {"text", FIELD_TEXT, offsetof(Line, text), .length_max = PROGRESS_TEXT_SIZE - 1},
};
static const FieldTable line_table = {"progress", line_fields, COUNT(line_fields), sizeof(Line)};

/* The texts of the report are in the arena. */
static ErrorCode line_read(const char *line, size_t size, Arena *arena, JobProgress *ret_progress, Error *reterr)
{
    size_t prefix = strlen(LINE_PREFIX);
    Line   read;

    TRY(reader_object(line + prefix, size - prefix, &line_table, arena, &read, reterr));
    *ret_progress = (JobProgress){.percent = read.has_percent ? (int)read.percent : PROGRESS_NONE, .text = read.text};
    return progress_check(ret_progress, reterr);
}

/* Before anything is allocated: a program may write any number of lines. */
static ErrorCode line_check(const char *line, size_t size, Error *reterr)
{
    if (size >= PROGRESS_LINE_MAX)
        return fail(reterr, ERR_LIMIT, "the line has more than %d bytes", PROGRESS_LINE_MAX - 1);
    if (size < strlen(LINE_PREFIX) || memcmp(line, LINE_PREFIX, strlen(LINE_PREFIX)) != 0)
        return fail(reterr, ERR_INVALID, "the line does not begin with \"%s\"", LINE_PREFIX);
    return OK;
}

static ErrorCode line_take(const char *line, size_t size, ProgressTake *on_report, void *context, Error *reterr)
{
    scoped(arena_free) Arena *arena = NULL;
    JobProgress               progress;

    TRY(line_check(line, size, reterr));
    arena = arena_new(LINE_ARENA);
    TRY(line_read(line, size, arena, &progress, reterr));
    on_report(context, &progress);
    return OK;
}

static void line_end(ProgressLines *lines, ProgressTake *on_report, void *context)
{
    if (line_take(lines->line, lines->size, on_report, context, lines->ignored ? NULL : &lines->why) != OK)
        lines->ignored++;
    lines->size = 0;
}

void progress_lines_read(ProgressLines *lines, const char *bytes, size_t size, ProgressTake *on_report, void *context)
{
    while (size > 0) {
        const char *end   = memchr(bytes, '\n', size);
        size_t      part  = end ? (size_t)(end - bytes) : size;
        size_t      space = sizeof lines->line - lines->size;
        size_t      kept  = part < space ? part : space;

        memcpy(lines->line + lines->size, bytes, kept);
        lines->size += kept;
        bytes += part;
        size -= part;
        if (!end)
            break;
        bytes++;
        size--;
        line_end(lines, on_report, context);
    }
}

void progress_lines_end(ProgressLines *lines, ProgressTake *on_report, void *context)
{
    if (lines->size > 0)
        line_end(lines, on_report, context);
    if (lines->ignored == 0)
        return;
    metric_add(&bus_metrics.progress_ignored, lines->ignored);
    log_write(LOG_WARN, "exec", "lines that are no progress were ignored", LOG_INT("lines", lines->ignored),
              LOG_STR("first", lines->why.text));
}
