/*
 * stat.c - see stat.h.
 */
#include "pg/stat.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/module.h"
#include "base/sync.h"
#include "base/text.h"
#include "base/uuid.h"
#include "pg/tx.h"
#include "sql.h"

#define SLOTS_MIN 1024

/* What of a metric is stored. */
typedef struct {
    const Metric   *metric; /* NULL: a free slot */
    MetricHistogram stored;
} StatSlot;

typedef struct {
    const char     *measure, *label;
    StatSlot       *slot;
    MetricHistogram now;
    int64_t         count;
    char            buckets[(METRIC_BUCKETS + 1) * 15];
} StatRow;

static struct {
    Mutex     mutex; /* guards next and is_running; the rest belongs to the thread that flushes */
    Mono      next;
    bool      is_running;
    char      source[UUID_TEXT_SIZE];
    int64_t   flush;
    bool      is_unsure; /* the rows were sent, and whether they are stored is not known */
    StatSlot *slots;     /* open addressing, by the address of the metric; at most half of them are used */
    int       slot_count, slots_used;
    StatRow  *rows;
    int       row_count;
} own = {.mutex = {.native = PTHREAD_MUTEX_INITIALIZER}};

/* ---- what is stored ---- */

static StatSlot *slot_search(StatSlot *slots, int slot_count, const Metric *metric)
{
    size_t at = ((size_t)metric / sizeof *metric) % (size_t)slot_count;

    while (slots[at].metric && slots[at].metric != metric)
        at = (at + 1) % (size_t)slot_count;
    return &slots[at];
}

static void slots_grow(void)
{
    int       count = own.slot_count ? 2 * own.slot_count : SLOTS_MIN;
    StatSlot *slots = memory_new((size_t)count, sizeof *slots);

    for (int i = 0; i < own.slot_count; i++)
        if (own.slots[i].metric)
            *slot_search(slots, count, own.slots[i].metric) = own.slots[i];
    free(own.slots);
    own.slots      = slots;
    own.slot_count = count;
}

static StatSlot *slot_of(const Metric *metric)
{
    StatSlot *slot = slot_search(own.slots, own.slot_count, metric);

    if (!slot->metric) {
        slot->metric = metric;
        own.slots_used++;
    }
    return slot;
}

/* ---- what is new ---- */

/* "{0,3,1}", without the zeros at its end. */
static void buckets_print(StatRow *row, const MetricHistogram *stored)
{
    int last = METRIC_BUCKETS, length = 0;

    while (last > 0 && row->now.buckets[last] == stored->buckets[last])
        last--;
    for (int i = 0; i <= last; i++)
        length += snprintf(row->buckets + length, sizeof row->buckets - (size_t)length, "%s%" PRId64, i ? "," : "{",
                           row->now.buckets[i] - stored->buckets[i]);
    snprintf(row->buckets + length, sizeof row->buckets - (size_t)length, "}");
}

static void row_add(const char *measure, const char *label, const Metric *metric)
{
    StatRow  *row = &own.rows[own.row_count];
    StatSlot *slot;

    if (own.row_count == STAT_ROWS_MAX)
        return;
    if (2 * own.slots_used >= own.slot_count)
        return; /* slots_reserve() has made too few: the next flush has it */
    slot = slot_of(metric);
    *row = (StatRow){.measure = measure, .label = label, .slot = slot};
    if (metric_is_histogram(metric->row.kind)) {
        metric_histogram(metric, &row->now);
        row->count = row->now.count - slot->stored.count;
        if (row->count > 0)
            buckets_print(row, &slot->stored);
    } else {
        row->now.count = metric_value(metric);
        row->count     = row->now.count - slot->stored.count;
    }
    own.row_count += row->count > 0;
}

/* Rows have the addresses of slots, so the slots move before any row is made. */
static void slots_reserve(void)
{
    int               metrics = 0;
    const MetricStat *one;

    for (size_t i = 0; (one = module_stat(i)); i++)
        metrics += one->table->label ? METRIC_SERIES_MAX + 1 : 1;
    while (own.slot_count < 2 * metrics + 2)
        slots_grow();
}

static void rows_collect(void)
{
    const MetricStat *one;

    own.row_count = 0;
    if (!own.rows)
        own.rows = memory_new(STAT_ROWS_MAX, sizeof *own.rows);
    slots_reserve();
    for (size_t i = 0; (one = module_stat(i)); i++) {
        if (!one->table->label) {
            row_add(one->measure, "", &one->table->metrics[one->row]);
            continue;
        }
        for (const MetricSeries *series = NULL; (series = metric_series_next(one->table, series));)
            row_add(one->measure, metric_series_value(series), &metric_series_metrics(series)[one->row]);
    }
}

/* ---- a flush ---- */

static ErrorCode rows_store(Pool *pool, Deadline deadline, Error *reterr)
{
    scoped(arena_free) Arena *arena   = arena_new(ARENA_BYTES_DEFAULT);
    TxOptions                 options = {.name = "stat", .deadline = deadline, .arena = arena, .keyed = true};
    int                       count   = own.row_count;
    const char **measures = arena_array(arena, const char *, count), **labels = arena_array(arena, const char *, count),
               **buckets = arena_array(arena, const char *, count);
    int64_t *counts      = arena_array(arena, int64_t, count), added;

    for (int i = 0; i < count; i++) {
        measures[i] = own.rows[i].measure;
        labels[i]   = own.rows[i].label;
        counts[i]   = own.rows[i].count;
        buckets[i]  = own.rows[i].buckets;
    }
    return db_call(pool, &options, sql_pg_stat_add,
                   DB_ARGS(db_text(own.source), db_i64(own.flush), db_texts(arena, measures, count),
                           db_texts(arena, labels, count), db_i64s(arena, counts, count),
                           db_texts(arena, buckets, count)),
                   &db_i64_shape, &added, reterr);
}

static ErrorCode flush_run(Pool *pool, Deadline deadline, Error *reterr)
{
    if (!own.source[0])
        uuid_new(own.source);
    if (!own.is_unsure) {
        rows_collect();
        if (own.row_count == 0)
            return OK;
        own.flush++;
    }
    own.is_unsure = true;
    TRY(rows_store(pool, deadline, reterr));
    for (int i = 0; i < own.row_count; i++)
        own.rows[i].slot->stored = own.rows[i].now;
    own.is_unsure = false;
    return OK;
}

bool stat_is_due(void)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&own.mutex);
    Mono                        now  = clock_mono();
    bool                        is_due;

    if (own.next.ns == 0) /* the first minute */
        own.next = mono_plus_ms(now, STAT_MS);
    is_due = !own.is_running && !mono_before(now, own.next);
    if (is_due)
        own.next = mono_plus_ms(now, STAT_MS);
    return is_due;
}

ErrorCode stat_flush(Pool *pool, Deadline deadline, Error *reterr)
{
    ErrorCode code;
    bool      was_running;

    mutex_lock(&own.mutex);
    was_running    = own.is_running;
    own.is_running = true;
    mutex_unlock(&own.mutex);
    if (was_running)
        return OK;
    code = flush_run(pool, deadline, reterr);
    mutex_lock(&own.mutex);
    own.is_running = false;
    mutex_unlock(&own.mutex);
    return code;
}

/* ---- reading ---- */

DB_SHAPE(stat_point, StatPoint, STAT_COLUMNS);

const char *const *stat_measures(Arena *arena)
{
    size_t       count = 0;
    const char **names;

    while (module_stat(count))
        count++;
    names = arena_array(arena, const char *, count + 1);
    for (size_t i = 0; i < count; i++)
        names[i] = module_stat(i)->measure;
    names[count] = NULL;
    return names;
}

static const MetricStat *measure_find(const char *name)
{
    const MetricStat *one;

    for (size_t i = 0; (one = module_stat(i)); i++)
        if (strcmp(one->measure, name) == 0)
            return one;
    return NULL;
}

bool stat_is_time(const char *measure)
{
    const MetricStat *one = measure_find(measure);

    return one && metric_is_histogram(one->table->metrics[one->row].row.kind);
}

static const char *measures_print(Arena *arena)
{
    const MetricStat *one;
    Text              text;

    text_init(&text, arena, TEXT_MAX_LINE);
    for (size_t i = 0; (one = module_stat(i)); i++)
        text_print(&text, "%s%s", i ? ", " : "", one->measure);
    return text_string(&text);
}

int stat_step_s(int64_t range_s, bool has_label)
{
    int64_t unit = range_s > (has_label ? 2 * 86400 : 6 * 3600) ? 3600 : 60;
    int64_t step = (range_s / 60 + unit - 1) / unit * unit;

    return (int)(step > unit ? step : unit);
}

ErrorCode stat_list(Pool *pool, Deadline deadline, Arena *arena, const StatFilter *filter, StatPoint **ret_list,
                    int *ret_count, Error *reterr)
{
    TxOptions options = {.name = "stat_list", .deadline = deadline, .arena = arena, .read_only = true};

    if (!measure_find(filter->measure))
        return fail(reterr, ERR_INVALID, "measure must be one of %s, got \"%.40s\"", measures_print(arena),
                    filter->measure);
    return db_call_many(pool, &options, sql_pg_stat_list,
                        DB_ARGS(db_text(filter->measure), db_text(filter->label), db_i64(filter->since),
                                db_i32(filter->step_s)),
                        &stat_point_shape, ret_list, ret_count, reterr);
}

static void milliseconds_write(Writer *writer, const char *name, int64_t ms)
{
    if (ms < 0)
        writer_null(writer, name);
    else
        writer_i64(writer, name, ms);
}

void stat_write(Writer *writer, const StatFilter *filter, const StatPoint *list, int count)
{
    writer_object(writer, NULL);
    writer_text(writer, "measure", filter->measure);
    writer_text(writer, "label", filter->label);
    writer_time(writer, "since", filter->since);
    writer_i64(writer, "step_s", filter->step_s);
    writer_array(writer, "items");
    for (int i = 0; i < count; i++) {
        writer_object(writer, NULL);
        writer_time(writer, "at", list[i].at);
        writer_i64(writer, "count", list[i].count);
        milliseconds_write(writer, "p50_ms", list[i].p50_ms);
        milliseconds_write(writer, "p95_ms", list[i].p95_ms);
        writer_end(writer);
    }
    writer_end(writer);
    writer_end(writer);
}
