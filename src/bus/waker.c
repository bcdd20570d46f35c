/*
 * waker.c - one thread, a list of marked domains, one statement for all of them; see waker.h.
 */
#include "bus/waker.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/sync.h"
#include "bus/metric.h"
#include "pg/tx.h"
#include "sql.h"

#define DOMAINS_MAX 256
#define NAME_SIZE   64
#define SEND_MS     2000
#define FAREWELL_MS 200
#define FAILED_MS   1000

struct Waker {
    Pool     *pool;
    pthread_t thread;
    Mutex     mutex; /* guards the rest */
    Cond      changed;
    char      marked[DOMAINS_MAX][NAME_SIZE];
    int       count;
    bool      started; /* the thread, by the first notification */
    bool      stopping;
};

static ErrorCode notifications_send(Pool *pool, char (*domains)[NAME_SIZE], int count, Deadline deadline, Error *reterr)
{
    scoped(arena_free) Arena *arena   = arena_new(ARENA_BYTES_DEFAULT);
    TxOptions                 options = {.name = "wake", .deadline = deadline, .arena = arena, .keyed = true};
    const char               *names[DOMAINS_MAX];
    void                     *rows;
    int                       row_count;

    for (int i = 0; i < count; i++)
        names[i] = domains[i];
    return db_call_many(pool, &options, sql_bus_wake, DB_ARGS(db_texts(arena, names, count)), &db_text_shape, &rows,
                        &row_count, reterr);
}

/* Under the mutex, which it leaves while the statement is under way. true: it went well. */
static bool marked_send(Waker *waker, Deadline deadline)
{
    char  domains[DOMAINS_MAX][NAME_SIZE];
    int   count = waker->count;
    Error error = {0};
    bool  sent;

    memcpy(domains, waker->marked, sizeof domains);
    waker->count = 0;
    mutex_unlock(&waker->mutex);
    sent = notifications_send(waker->pool, domains, count, deadline, &error) == OK;
    if (sent)
        metric_add(&bus_metrics.notifications_sent, count);
    else
        log_error(LOG_DEBUG, "waker", "no notification was sent; workers poll", &error);
    mutex_lock(&waker->mutex);
    return sent;
}

static void *waker_run(void *context)
{
    Waker *waker = context;

    mutex_lock(&waker->mutex);
    while (!waker->stopping) {
        if (waker->count == 0) {
            cond_wait(&waker->changed, &waker->mutex, deadline_never());
            continue;
        }
        Deadline rest = deadline_in_ms(marked_send(waker, deadline_in_ms(SEND_MS)) ? WAKER_INTERVAL_MS : FAILED_MS);
        while (!waker->stopping && !deadline_passed(rest))
            cond_wait(&waker->changed, &waker->mutex, rest);
    }
    if (waker->count > 0)
        (void)marked_send(waker, deadline_in_ms(FAREWELL_MS));
    mutex_unlock(&waker->mutex);
    return NULL;
}

Waker *waker_new(Pool *pool)
{
    Waker *waker = calloc(1, sizeof *waker);

    if (!waker)
        abort();
    waker->pool = pool;
    mutex_init(&waker->mutex);
    cond_init(&waker->changed);
    return waker;
}

void waker_free(Waker *waker)
{
    mutex_lock(&waker->mutex);
    waker->stopping = true;
    cond_signal(&waker->changed);
    mutex_unlock(&waker->mutex);
    if (waker->started)
        thread_join(waker->thread);
    cond_done(&waker->changed);
    mutex_done(&waker->mutex);
    free(waker);
}

void waker_notify(Waker *waker, const char *domain)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&waker->mutex);

    for (int i = 0; i < waker->count; i++)
        if (strcmp(waker->marked[i], domain) == 0)
            return;
    if (waker->count == DOMAINS_MAX || strlen(domain) >= NAME_SIZE)
        return; /* its workers poll */
    if (!waker->started && !(waker->started = thread_try_start("waker", waker_run, waker, &waker->thread)))
        return;
    memcpy(waker->marked[waker->count++], domain, strlen(domain) + 1);
    cond_signal(&waker->changed);
}

void wake_names(const Wake *wake, const char *domains)
{
    char   name[NAME_SIZE];
    size_t size;

    for (; wake && domains && *domains; domains += size + (domains[size] == ',')) {
        size = strcspn(domains, ",");
        if (size >= sizeof name)
            continue; /* its workers poll */
        memcpy(name, domains, size);
        name[size] = '\0';
        wake->call(wake->context, name);
    }
}

static void waker_call(void *context, const char *domain)
{
    waker_notify(context, domain);
}

Wake waker_wake(Waker *waker)
{
    return (Wake){waker_call, waker};
}

void waker_notify_names(Waker *waker, const char *domains)
{
    wake_names(&(Wake){waker_call, waker}, domains);
}

/* ---- what was sent ---- */

struct WakeDomain {
    const char *name;
    WakeDomain *next;
};

static bool is_claimable(const SendItem *item)
{
    return item->code == OK && item->is_new && item->delay_ms == 0;
}

void waker_notify_sent(Waker *waker, const SendItem *item)
{
    if (is_claimable(item))
        waker_notify(waker, item->domain);
}

void wake_list_add_sent(WakeList *list, Arena *arena, const SendItem *item)
{
    WakeDomain *domain = list->first;

    if (!is_claimable(item))
        return;
    while (domain && strcmp(domain->name, item->domain) != 0)
        domain = domain->next;
    if (domain)
        return;
    domain      = arena_alloc(arena, sizeof *domain);
    *domain     = (WakeDomain){.name = arena_text(arena, item->domain), .next = list->first};
    list->first = domain;
}

void waker_notify_list(Waker *waker, const WakeList *list)
{
    for (const WakeDomain *domain = list->first; domain; domain = domain->next)
        waker_notify(waker, domain->name);
}
