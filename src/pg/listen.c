/*
 * listen.c - one thread, one connection, two things to wait for: the server's socket and our own eventfd.
 *
 *     DOWN -> CONNECTED [it connected: every channel is listened to and called back once]
 *     CONNECTED -> UP   [the notification that it sent to itself through the pool came back]
 *     UP -> CONNECTED   [one did not come back within PROBE_MS_MAX]     any -> DOWN [the connection died]
 *
 * It sends one every minute, whether the last one came back or not: a pooler may be put in between, or taken away, at
 * any time.
 */
#include "pg/listen.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/sync.h"
#include "base/uuid.h"
#include "pg/conn.h"
#include "pg/metric.h"
#include "pg/query.h"
#include "sql.h"

#define CHANNEL_SIZE   64   /* what PostgreSQL's names hold, with the NUL */
#define CYCLE_MS_MAX   3000 /* what one turn may wait for the database */
#define PROBE_EVERY_MS 60000
#define PROBE_MS_MAX   3000
#define BACKOFF_MS     1000
#define BACKOFF_MS_MAX 30000

/* One callback of a channel. */
typedef struct Channel Channel;
struct Channel {
    Channel        *next;
    char            name[CHANNEL_SIZE];
    ListenCallback *callback; /* NULL: removed, and free for the next one of this name */
    void           *context;
    bool            is_begun; /* it is listened to on conn, and was called back for that */
};

struct Listen {
    char     *conninfo;
    Pool     *pool;
    pthread_t thread;
    bool      has_thread;
    int       wake_fd;
    Cut       cut; /* of what the thread waits for, when it shall end */

    Mutex    calling; /* held while a callback runs; taken before the mutex */
    Mutex    mutex;   /* guards the next three; channels are only ever added, and their names do not change */
    Channel *first;
    bool     stopping;
    bool     up;

    /* The thread's own. */
    Conn    *conn;
    int      backoff_ms; /* after the next failure */
    bool     complained; /* said that it does not work, and not yet that it works again */
    bool     probe_is_pending;
    Mono     probe_at; /* when to send the next one, or when to give up the one that is out */
    unsigned probe_number;
    char     probe_channel[CHANNEL_SIZE];
};

/* ---- waiting ---- */

static void listen_wake(Listen *listen)
{
    uint64_t one = 1;

    if (write(listen->wake_fd, &one, sizeof one) != sizeof one)
        abort(); /* an eventfd counts to 2^64, so this does not fail */
}

static bool listen_is_stopping(Listen *listen)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&listen->mutex);

    return listen->stopping;
}

/* Until there is something to read (fd may be -1), listen_wake() was called, or the deadline has passed. */
static void listen_wait(Listen *listen, int fd, Mono until)
{
    struct pollfd polled[] = {
        {.fd = listen->wake_fd, .events = POLLIN},
        {.fd = fd,              .events = POLLIN}
    };
    uint64_t wakes;

    (void)poll(polled, COUNT(polled), deadline_left_ms((Deadline){until}));
    if (polled[0].revents & POLLIN)
        (void)!read(listen->wake_fd, &wakes, sizeof wakes);
}

/* ---- up and down ---- */

static void listen_set_up(Listen *listen, bool up)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&listen->mutex);

    listen->up = up;
    metric_set(&pg_metrics.listen_up, up);
}

/* Said once per trouble, however long it lasts. */
static void listen_mark_down(Listen *listen, const char *message, const Error *error)
{
    listen_set_up(listen, false);
    if (!listen->complained)
        log_error(LOG_WARN, "listen", message, error);
    listen->complained = true;
}

static void listen_mark_up(Listen *listen)
{
    listen_set_up(listen, true);
    listen->backoff_ms = BACKOFF_MS;
    if (listen->complained)
        log_write(LOG_INFO, "listen", "notifications arrive again");
    listen->complained = false;
}

static void listen_disconnect(Listen *listen)
{
    if (listen->conn)
        conn_close(take(listen->conn));
    mutex_lock(&listen->mutex);
    for (Channel *channel = listen->first; channel; channel = channel->next)
        channel->is_begun = false;
    mutex_unlock(&listen->mutex);
    listen->probe_is_pending = false;
}

/* ---- connected ---- */

static ErrorCode channel_listen(Listen *listen, const char *name, Deadline deadline, Error *reterr)
{
    scoped(PQclear) PGresult *result = NULL;
    char                      sql[CHANNEL_SIZE + 16];

    snprintf(sql, sizeof sql, "listen \"%s\"", name);
    return conn_query(listen->conn, sql, CONN_NO_PARAMS, deadline, &result, reterr);
}

static ErrorCode listen_connect(Listen *listen, Deadline deadline, Error *reterr)
{
    TRY(conn_open(listen->conninfo, "pawl listen", deadline, &listen->conn, reterr));
    listen->probe_at = clock_mono();
    return channel_listen(listen, listen->probe_channel, deadline, reterr);
}

/* One that was added and is not listened to; NULL: none. *ret_is_known: another one of the same name is. */
static Channel *channel_next(Listen *listen, bool *ret_is_known)
{
    scoped(mutex_unlock) Mutex *held  = mutex_hold(&listen->mutex);
    Channel                    *found = listen->first;

    while (found && (found->is_begun || !found->callback))
        found = found->next;
    *ret_is_known = false;
    for (const Channel *at = listen->first; found && at; at = at->next)
        *ret_is_known |= at->is_begun && strcmp(at->name, found->name) == 0;
    return found;
}

static void channel_call(Listen *listen, const Channel *channel, const char *payload)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&listen->calling);

    if (channel->callback)
        channel->callback(channel->context, channel->name, payload);
}

/* Whatever came before it is listened to may have been missed, so it is called back once. */
static ErrorCode channel_begin(Listen *listen, Channel *channel, bool is_known, Deadline deadline, Error *reterr)
{
    if (!is_known)
        TRY(channel_listen(listen, channel->name, deadline, reterr));
    mutex_lock(&listen->mutex);
    channel->is_begun = true;
    mutex_unlock(&listen->mutex);
    channel_call(listen, channel, /* payload= */ NULL);
    return OK;
}

/* ---- the notification to itself ---- */

static ErrorCode probe_send(Listen *listen, Deadline deadline, Error *reterr)
{
    scoped(arena_free) Arena      *arena    = arena_new(ARENA_BYTES_DEFAULT);
    scoped(pool_release) Checkout *checkout = NULL;
    char                           payload[16];
    ErrorCode                      code;

    snprintf(payload, sizeof payload, "%u", ++listen->probe_number);
    TRY(pool_acquire(listen->pool, deadline, &checkout, reterr));
    code = db_run(&(Tx){checkout_conn(checkout), arena, deadline, /* autocommit= */ true}, sql_pg_listen_probe,
                  DB_ARGS(db_text(listen->probe_channel), db_text(payload)), NULL, reterr);
    checkout_report(checkout, code, reterr);
    return code;
}

/* A notification that could not be sent proves nothing about the listener: the pool logs why. */
static void probe_step(Listen *listen, Deadline deadline)
{
    Error error = {0};
    Mono  now   = clock_mono();

    if (mono_before(now, listen->probe_at))
        return;
    if (listen->probe_is_pending) {
        (void)fail(&error, ERR_UNAVAILABLE, "a notification did not come back: is there a pooler in transaction mode?");
        listen_mark_down(listen, "notifications do not arrive, polling goes on alone", &error);
        listen->probe_is_pending = false;
        listen->probe_at         = mono_plus_ms(now, PROBE_EVERY_MS);
        return;
    }
    listen->probe_is_pending = probe_send(listen, deadline, &error) == OK;
    listen->probe_at         = mono_plus_ms(clock_mono(), PROBE_MS_MAX);
}

static void probe_returned(Listen *listen, const char *payload)
{
    char expected[16];

    snprintf(expected, sizeof expected, "%u", listen->probe_number);
    if (strcmp(payload, expected) != 0)
        return; /* a late one */
    listen->probe_is_pending = false;
    listen->probe_at         = mono_plus_ms(clock_mono(), PROBE_EVERY_MS);
    listen_mark_up(listen);
}

/* ---- notifications ---- */

/* The first channel behind this one that is listened to; NULL: none. */
static Channel *channel_begun(Listen *listen, const Channel *behind)
{
    scoped(mutex_unlock) Mutex *held  = mutex_hold(&listen->mutex);
    Channel                    *found = behind ? behind->next : listen->first;

    while (found && !found->is_begun)
        found = found->next;
    return found;
}

static void notification_deliver(Listen *listen, const char *name, const char *payload)
{
    if (strcmp(name, listen->probe_channel) == 0)
        probe_returned(listen, payload);
    for (Channel *channel = channel_begun(listen, NULL); channel; channel = channel_begun(listen, channel))
        if (strcmp(channel->name, name) == 0)
            channel_call(listen, channel, payload);
}

static ErrorCode notifications_receive(Listen *listen, Error *reterr)
{
    PGconn   *native = conn_native(listen->conn);
    PGnotify *notify;

    if (!PQconsumeInput(native))
        return fail(reterr, ERR_UNAVAILABLE, "connection to database lost (%s)", conn_name(listen->conn));
    while ((notify = PQnotifies(native))) {
        notification_deliver(listen, notify->relname, notify->extra);
        PQfreemem(notify);
    }
    return OK;
}

/* ---- the thread ---- */

/* One step at a time: between two steps the thread checks whether it shall stop. */
static ErrorCode listen_cycle(Listen *listen, Error *reterr)
{
    Deadline deadline = deadline_cut(deadline_in_ms(CYCLE_MS_MAX), &listen->cut);
    Channel *channel;
    bool     is_known;

    if (!listen->conn)
        return listen_connect(listen, deadline, reterr);
    if ((channel = channel_next(listen, &is_known)))
        return channel_begin(listen, channel, is_known, deadline, reterr);
    probe_step(listen, deadline);
    TRY(notifications_receive(listen, reterr)); /* also those that came with the answer to a LISTEN */
    listen_wait(listen, PQsocket(conn_native(listen->conn)), listen->probe_at);
    return notifications_receive(listen, reterr);
}

static void *listen_run(void *context)
{
    Listen *listen = context;

    while (!listen_is_stopping(listen)) {
        Error error = {0};

        if (listen_cycle(listen, &error) == OK)
            continue;
        if (listen_is_stopping(listen))
            break; /* what it waited for was cut short */
        listen_disconnect(listen);
        listen_mark_down(listen, "cannot listen for notifications, polling goes on alone", &error);
        Mono again = mono_plus_ms(clock_mono(), listen->backoff_ms);

        listen->backoff_ms = listen->backoff_ms * 2 < BACKOFF_MS_MAX ? listen->backoff_ms * 2 : BACKOFF_MS_MAX;
        while (mono_before(clock_mono(), again) && !listen_is_stopping(listen))
            listen_wait(listen, /* fd= */ -1, again);
    }
    listen_disconnect(listen);
    return NULL;
}

/* ---- the public functions ---- */

Listen *listen_new(const char *conninfo, Pool *pool)
{
    Listen *listen = memory_new(1, sizeof *listen);
    char    uuid[UUID_TEXT_SIZE];

    listen->conninfo   = memory_text(conninfo);
    listen->pool       = pool;
    listen->wake_fd    = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    listen->backoff_ms = BACKOFF_MS;
    if (listen->wake_fd < 0)
        abort();
    uuid_new(uuid);
    snprintf(listen->probe_channel, sizeof listen->probe_channel, "pawl_probe_%s", uuid);
    mutex_init(&listen->calling);
    mutex_init(&listen->mutex);
    listen->has_thread = thread_try_start("listen", listen_run, listen, &listen->thread);
    if (!listen->has_thread)
        log_write(LOG_WARN, "listen", "cannot start its thread: wake-ups come by polling only",
                  LOG_STR("error", strerrordesc_np(errno)));
    return listen;
}

void listen_free(Listen *listen)
{
    mutex_lock(&listen->mutex);
    listen->stopping = true;
    mutex_unlock(&listen->mutex);
    cut_at(&listen->cut, clock_mono());
    listen_wake(listen);
    if (listen->has_thread)
        thread_join(listen->thread);
    listen_set_up(listen, false);
    mutex_done(&listen->mutex);
    mutex_done(&listen->calling);
    for (Channel *channel = listen->first, *next; channel; channel = next) {
        next = channel->next;
        free(channel);
    }
    close(listen->wake_fd);
    free(listen->conninfo);
    free(listen);
}

void listen_add(Listen *listen, const char *channel, ListenCallback *callback, void *context)
{
    size_t length = strlen(channel);

    assert(length > 0 && length < CHANNEL_SIZE);
    assert(strspn(channel, "abcdefghijklmnopqrstuvwxyz0123456789_") == length);
    mutex_lock(&listen->calling);
    mutex_lock(&listen->mutex);
    Channel *added = listen->first;

    while (added && (added->callback || strcmp(added->name, channel) != 0))
        added = added->next;
    if (!added) {
        added       = memory_new(1, sizeof *added);
        added->next = listen->first;
        memcpy(added->name, channel, length + 1);
        listen->first = added;
    }
    added->callback = callback;
    added->context  = context;
    added->is_begun = false;
    mutex_unlock(&listen->mutex);
    mutex_unlock(&listen->calling);
    listen_wake(listen);
}

void listen_remove(Listen *listen, ListenCallback *callback, void *context)
{
    mutex_lock(&listen->calling);
    mutex_lock(&listen->mutex);
    for (Channel *channel = listen->first; channel; channel = channel->next)
        if (channel->callback == callback && channel->context == context)
            channel->callback = NULL;
    mutex_unlock(&listen->mutex);
    mutex_unlock(&listen->calling);
}

bool listen_is_up(Listen *listen)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&listen->mutex);

    return listen->up;
}
