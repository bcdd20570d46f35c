/*
 * waker.c - one thread, a list of marked domains, one statement for all of them, and the members of this process; see waker.h.
 */
#include "bus/waker.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/sync.h"
#include "bus/metric.h"
#include "pg/tx.h"
#include "sql.h"

#define DOMAINS_MAX 256
#define NAME_SIZE   64
#define SEND_MS     2000
#define FAREWELL_MS 200
#define FAILED_MS   1000

typedef struct {
    char name[NAME_SIZE];
    bool is_local_done; /* the members were called when it was marked */
} Mark;

struct Waker {
    Pool     *pool;
    pthread_t thread;
    Mutex     mutex; /* guards the rest */
    Cond      changed;
    Mark      marked[DOMAINS_MAX];
    int       count;
    bool      started; /* the thread, by the first notification */
    bool      resting; /* from a statement until WAKER_INTERVAL_MS after it */
    bool      stopping;
};

/* ---- members of this process ---- */

/* Held while members are called; taken after no mutex of a waker. */
static Mutex       members_mutex = {.native = PTHREAD_MUTEX_INITIALIZER};
static WakeMember *members;

void wake_join(WakeMember *member)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&members_mutex);

    member->next = members;
    members      = member;
}

void wake_leave(WakeMember *member)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&members_mutex);
    WakeMember                **link = &members;

    while (*link != member)
        link = &(*link)->next;
    *link = member->next;
}

static void members_call(const Pool *pool, const char *domain)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&members_mutex);

    for (const WakeMember *member = members; member; member = member->next)
        if (pool_is_alike(member->pool, pool))
            member->call(member->context, domain);
}

/* ---- notifications ---- */

static ErrorCode notifications_send(Pool *pool, const Mark *marks, int count, Deadline deadline, Error *reterr)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    TxOptions   options = {.name = "wake", .deadline = deadline, .arena = arena, .keyed = true, .prepare = true};
    const char *names[DOMAINS_MAX];
    void       *rows;
    int         row_count;

    for (int i = 0; i < count; i++)
        names[i] = marks[i].name;
    return db_call_many(pool, &options, sql_bus_wake, DB_ARGS(db_texts(arena, names, count)), &db_text_shape, &rows,
                        &row_count, reterr);
}

/* Under the mutex, which it leaves while the statement is under way. true: it went well. */
static bool marked_send(Waker *waker, Deadline deadline)
{
    Mark  marks[DOMAINS_MAX];
    int   count = waker->count;
    Error error = {0};
    bool  sent;

    memcpy(marks, waker->marked, sizeof *marks * (size_t)count);
    waker->count   = 0;
    waker->resting = true;
    mutex_unlock(&waker->mutex);
    for (int i = 0; i < count; i++)
        if (!marks[i].is_local_done)
            members_call(waker->pool, marks[i].name);
    sent = notifications_send(waker->pool, marks, count, deadline, &error) == OK;
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
        waker->resting = false;
    }
    if (waker->count > 0)
        (void)marked_send(waker, deadline_in_ms(FAREWELL_MS));
    mutex_unlock(&waker->mutex);
    return NULL;
}

Waker *waker_new(Pool *pool)
{
    Waker *waker = memory_new(1, sizeof *waker);

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

/* Returns whether the members are to be called now: the thread calls them for what is marked while it rests. */
static bool waker_mark(Waker *waker, const char *domain)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&waker->mutex);
    Mark                       *mark = &waker->marked[waker->count];

    for (int i = 0; i < waker->count; i++)
        if (strcmp(waker->marked[i].name, domain) == 0)
            return !waker->resting;
    if (waker->count == DOMAINS_MAX || strlen(domain) >= NAME_SIZE)
        return false; /* its workers poll */
    if (!waker->started && !(waker->started = thread_try_start("waker", waker_run, waker, &waker->thread)))
        return true;
    memcpy(mark->name, domain, strlen(domain) + 1);
    mark->is_local_done = !waker->resting;
    waker->count++;
    cond_signal(&waker->changed);
    return mark->is_local_done;
}

void waker_notify(Waker *waker, const char *domain)
{
    if (waker_mark(waker, domain))
        members_call(waker->pool, domain);
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
    bool is_moved = item->duplicate && strcmp(item->duplicate, "moved") == 0;

    return item->code == OK && (item->is_new || is_moved) && !item->is_started && item->delay_ms == 0;
}

void waker_notify_sent(Waker *waker, const SendItem *item)
{
    if (is_claimable(item))
        waker_notify(waker, item->domain);
}

static void wake_list_add(WakeList *list, Arena *arena, const char *name)
{
    WakeDomain *domain = arena_alloc(arena, sizeof *domain);

    *domain     = (WakeDomain){.name = arena_text(arena, name), .next = list->first};
    list->first = domain;
}

void wake_list_add_sent(WakeList *list, Arena *arena, const SendItem *item)
{
    const WakeDomain *domain = list->first;

    if (!is_claimable(item))
        return;
    while (domain && strcmp(domain->name, item->domain) != 0)
        domain = domain->next;
    if (!domain)
        wake_list_add(list, arena, item->domain);
}

WakeList wake_list_copy(const WakeList *list, Arena *arena)
{
    WakeList copy = {0};

    for (const WakeDomain *domain = list->first; domain; domain = domain->next)
        wake_list_add(&copy, arena, domain->name);
    return copy;
}

void waker_notify_list(Waker *waker, const WakeList *list)
{
    for (const WakeDomain *domain = list->first; domain; domain = domain->next)
        waker_notify(waker, domain->name);
}
