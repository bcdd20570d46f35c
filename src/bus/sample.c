/*
 * sample.c - see sample.h.
 */
#include "bus/sample.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "base/sync.h"
#include "base/world.h"
#include "bus/metric.h"
#include "pg/tx.h"
#include "sql.h"

typedef struct {
    int64_t id;
    bool    has_waited; /* its wait was measured; only its run is missing */
} Sampled;

/* Of one domain. `list` is a uniform sample of the `seen` commands of this minute, `running` has those of the minutes before that still ran. */
typedef struct DomainSample {
    uint64_t             hash;
    char                 domain[64];
    int64_t              seen;
    int                  count, running_count;
    Sampled              list[SAMPLE_MAX], running[SAMPLE_MAX];
    DomainMetrics       *metrics;
    struct DomainSample *next;
} DomainSample;

static struct {
    Mutex         mutex; /* guards the rest */
    int           count;
    DomainSample *first;
} samples = {.mutex = {.native = PTHREAD_MUTEX_INITIALIZER}};

/* Under the mutex. NULL: there are too many domains. */
static DomainSample *sample_of(const char *domain)
{
    uint64_t      hash = hash_text(domain);
    DomainSample *sample;

    for (sample = samples.first; sample; sample = sample->next)
        if (sample->hash == hash && strcmp(sample->domain, domain) == 0)
            return sample;
    if (samples.count == METRIC_SERIES_MAX || strlen(domain) >= sizeof sample->domain)
        return NULL;
    sample       = memory_new(1, sizeof *sample);
    sample->hash = hash;
    snprintf(sample->domain, sizeof sample->domain, "%s", domain);
    sample->metrics = metric_series(&domain_metric_table, domain);
    sample->next    = samples.first;
    samples.first   = sample;
    samples.count++;
    return sample;
}

void sample_claimed(const char *domain, const ClaimedCommand *list, int count)
{
    DomainSample *sample;

    if (count == 0)
        return;
    scoped(mutex_unlock) Mutex *held = mutex_hold(&samples.mutex);
    sample                           = sample_of(domain);
    for (int i = 0; i < count && sample; i++) {
        int64_t slot = sample->seen;

        if (list[i].pos != list[i].id)
            continue;
        sample->seen++;
        if (slot >= SAMPLE_MAX)
            slot = world_random() % sample->seen;
        if (slot < SAMPLE_MAX)
            sample->list[slot] = (Sampled){.id = list[i].id};
        if (sample->count < SAMPLE_MAX)
            sample->count++;
    }
}

/* ---- asking ---- */

#define TIMES_COLUMNS(X, T)        \
    X(T, I64, id, wait_us, run_us) \
    X(T, BOOL, is_running)
DB_ROW(Times, TIMES_COLUMNS);
DB_SHAPE(times, Times, TIMES_COLUMNS);

/* What is asked about now, and of which domain. */
typedef struct {
    Sampled       *list;
    DomainSample **samples;
    int            count;
} Asked;

static void asked_add(Asked *asked, DomainSample *sample, const Sampled *list, int count)
{
    for (int i = 0; i < count; i++) {
        asked->list[asked->count]      = list[i];
        asked->samples[asked->count++] = sample;
    }
}

static void asked_take(Asked *asked, Arena *arena)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&samples.mutex);
    int                         most = 2 * SAMPLE_MAX * samples.count;

    asked->list    = arena_array(arena, Sampled, most);
    asked->samples = arena_array(arena, DomainSample *, most);
    for (DomainSample *sample = samples.first; sample; sample = sample->next) {
        asked_add(asked, sample, sample->list, sample->count);
        asked_add(asked, sample, sample->running, sample->running_count);
        sample->seen = sample->count = sample->running_count = 0;
    }
}

static void times_take(DomainSample *sample, Sampled *sampled, const Times *times)
{
    if (!sampled->has_waited && times->wait_us >= 0)
        metric_observe_us(&sample->metrics->wait, times->wait_us);
    sampled->has_waited = true;
    if (times->run_us >= 0)
        metric_observe_us(&sample->metrics->run, times->run_us);
    else if (times->is_running && sample->running_count < SAMPLE_MAX)
        sample->running[sample->running_count++] = *sampled;
}

static int sampled_compare(const void *a, const void *b)
{
    int64_t x = ((const Times *)a)->id, y = ((const Times *)b)->id;

    return (x > y) - (x < y);
}

ErrorCode sample_measure(Pool *pool, Deadline deadline, Error *reterr)
{
    scoped(arena_free) Arena *arena   = arena_new(ARENA_BYTES_DEFAULT);
    TxOptions                 options = {.name = "sample", .deadline = deadline, .arena = arena, .read_only = true};
    Asked                     asked   = {0};
    int64_t                  *ids;
    Times                    *times;
    int                       count;

    asked_take(&asked, arena);
    if (asked.count == 0)
        return OK;
    ids = arena_array(arena, int64_t, asked.count);
    for (int i = 0; i < asked.count; i++)
        ids[i] = asked.list[i].id;
    TRY(db_call_many(pool, &options, sql_bus_command_times, DB_ARGS(db_i64s(arena, ids, asked.count)), &times_shape,
                     &times, &count, reterr));
    qsort(times, (size_t)count, sizeof *times, sampled_compare);
    scoped(mutex_unlock) Mutex *held = mutex_hold(&samples.mutex);
    for (int i = 0; i < asked.count; i++) {
        const Times  key   = {.id = asked.list[i].id};
        const Times *found = count ? bsearch(&key, times, (size_t)count, sizeof *times, sampled_compare) : NULL;

        if (found)
            times_take(asked.samples[i], &asked.list[i], found);
    }
    return OK;
}
