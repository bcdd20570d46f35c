/*
 * combined.c - the combiner and suspended requests, against a database and clients that a seed makes up.
 *
 *     sim_combiner [--seed FIRST] [--count N] [--trace]
 *
 * Clients submit items, wait in combiner_run(), or send a request that a network thread suspends; some hang up. The database
 * answers batches, refuses them for one bad or one locked item, is away, or loses the answer to a commit. The
 * sources of both are included, as mutants.py writes them, so that their insides can be watched and a planted mistake can take their place.
 *
 * Held for every item
 *   1. It is answered exactly once, with the result of its last run, and never run again once it was answered, acknowledged
 *      or in doubt.
 *   2. OK: committed. ERR_UNKNOWN: committed or not, and nothing else is said of an item in doubt. Anything else: not committed.
 *   3. Errors are its own: only a bad item conflicts, only a locked one is refused for a lock.
 *   4. Not run: answered by its deadline. Run: by the latest deadline of its batch.
 * Held for every suspended request: it is resumed once, after its handler has returned and its item was answered; on_closed is
 * called at most once, before that, and for a client that has gone; on_sent exactly once, after it.
 * Held at every moment: no time passes while a batch could start, nor past the deadline of a queued item.
 */
#include <stdio.h>

#include SIM_SOURCES

#include "base/log.h"
#include "http/server_internal.h"
#include "test/sim/fiber.h"

#define ITEMS_MAX   160
#define CLIENTS_MAX 10
#define SLACK_MS    1

typedef struct Wire Wire;
typedef struct {
    bool      bad;
    Mono      locked_until; /* .ns 0: never locked */
    size_t    weight;
    Deadline  deadline;
    Mono      latest; /* deadline of the batches that carried it */
    int       runs, commits, answers;
    bool      acknowledged, in_doubt;
    ErrorCode last; /* result of its last run */
    Wire     *wire; /* NULL: its caller waits */
} Item;

/* A request on its connection, as the network thread knows it. */
struct Wire {
    Peer    *peer;
    Request *request;
    Item    *item;
    bool     arrived, handled, hung_up, noticed, posted; /* noticed: the loop saw that the client hung up */
    int      resumed, gone, sent;
    Cond     changed;
};

static Combiner       *combiner;
static CombinerOptions options;
static int             limit_max; /* more items than this are more than our own limits allow */
static Item            items[ITEMS_MAX];
static int             item_count, batches;

static Mutex net_mutex; /* guards the wires */
static Cond  net_changed;
static Wire  wires[ITEMS_MAX];
static int   wire_count;
static bool  net_stopping;
static Loop *net_loop;

/* ---- the database ---- */

static size_t item_weight(const void *item)
{
    return ((const Item *)item)->weight;
}

static void batch_check(void **batch, int count, Deadline deadline)
{
    size_t weight = 0;

    if (count < 1 || count > options.batch_max)
        sim_fail("a batch of %d items", count);
    for (int i = 0; i < count; i++) {
        const Item *item = batch[i];

        weight += item->weight;
        if (item->answers)
            sim_fail("item %d is run after it was answered", (int)(item - items));
        if (item->acknowledged || item->in_doubt)
            sim_fail("item %d is run again %s", (int)(item - items), item->in_doubt ? "in doubt" : "after its commit");
        if (mono_before(deadline.at, item->deadline.at))
            sim_fail("item %d is run with a deadline before its own", (int)(item - items));
    }
    if (count > 1 && weight > options.weight_max)
        sim_fail("a batch of %d items weighs %zu", count, weight);
}

static void batch_commit(void **batch, int count)
{
    for (int i = 0; i < count; i++)
        ((Item *)batch[i])->commits = 1; /* by its key: a second time changes nothing */
}

static ErrorCode refuse(Error *reterr, ErrorCode code, const char *sqlstate)
{
    (void)fail(reterr, code, "the database says no");
    if (sqlstate)
        error_set_sqlstate(reterr, sqlstate);
    return code;
}

static bool any_is_bad(void **batch, int count)
{
    for (int i = 0; i < count; i++)
        if (((const Item *)batch[i])->bad)
            return true;
    return false;
}

static bool any_is_locked(void **batch, int count)
{
    for (int i = 0; i < count; i++)
        if (mono_before(sim_now(), ((const Item *)batch[i])->locked_until))
            return true;
    return false;
}

/* One transaction; its fate is the seed's. */
static ErrorCode transaction(void **batch, int count, Deadline deadline, Error *reterr)
{
    Mono end = mono_plus_ms(sim_now(), sim_chance(700)   ? sim_between(0, 10)
                                       : sim_chance(700) ? sim_between(20, 200)
                                                         : sim_between(200, 3000));

    if (count > limit_max)
        return refuse(reterr, ERR_LIMIT, NULL);
    if (!mono_before(end, deadline.at)) { /* our clock ends it, before or during its commit */
        clock_sleep_until(deadline);
        if (sim_chance(500))
            return refuse(reterr, ERR_TIMEOUT, "57014");
        if (sim_chance(500))
            batch_commit(batch, count);
        return refuse(reterr, ERR_UNKNOWN, NULL);
    }
    clock_sleep_until((Deadline){end});
    if (any_is_bad(batch, count))
        return refuse(reterr, ERR_CONFLICT, "23514");
    if (any_is_locked(batch, count))
        return refuse(reterr, ERR_BUSY, "55P03");
    if (sim_chance(40))
        return refuse(reterr, ERR_UNAVAILABLE, NULL);
    if (sim_chance(60)) {
        if (sim_chance(500))
            batch_commit(batch, count);
        return refuse(reterr, ERR_UNKNOWN, NULL);
    }
    batch_commit(batch, count);
    return OK;
}

static ErrorCode batch_body(void *context, void **batch, int count, Deadline deadline, Error *reterr)
{
    ErrorCode code;

    (void)context;
    batch_check(batch, count, deadline);
    if (++batches > options.slots_max)
        sim_fail("%d batches run at once", batches);
    for (int i = 0; i < count; i++) {
        Item *item = batch[i];

        item->runs++;
        if (mono_before(item->latest, deadline.at))
            item->latest = deadline.at;
    }
    code = transaction(batch, count, deadline, reterr);
    sim_trace("a batch of %d ends: %s", count, error_name(code));
    for (int i = 0; i < count; i++) {
        Item *item = batch[i];

        item->last = code;
        item->acknowledged |= code == OK;
        item->in_doubt |= code == ERR_UNKNOWN;
    }
    batches--;
    return code;
}

/* ---- answers ---- */

static void answer_check(const Item *item, ErrorCode code, const char *sqlstate)
{
    int number = (int)(item - items);

    if (item->answers != 1)
        sim_fail("item %d was answered %d times", number, item->answers);
    if (code == OK && !item->commits)
        sim_fail("item %d was acknowledged but not committed", number);
    if (item->in_doubt && code != ERR_UNKNOWN)
        sim_fail("item %d may have committed, and its caller got %s", number, error_name(code));
    if (code != OK && code != ERR_UNKNOWN && item->commits)
        sim_fail("item %d was committed, and its caller got %s", number, error_name(code));
    if (item->runs && code != item->last)
        sim_fail("item %d ended with %s, and its caller got %s", number, error_name(item->last), error_name(code));
    if (!item->runs && code != ERR_TIMEOUT && code != ERR_BUSY)
        sim_fail("item %d was never run, and its caller got %s", number, error_name(code));
    if ((code == ERR_CONFLICT && !item->bad) || code == ERR_LIMIT ||
        (strcmp(sqlstate, "55P03") == 0 && !item->locked_until.ns))
        sim_fail("item %d got the error of another: %s", number, error_name(code));
}

static void item_answered(Item *item, ErrorCode code, const char *sqlstate)
{
    Mono by = item->runs ? item->latest : item->deadline.at;

    item->answers++;
    sim_trace("item %d is answered: %s", (int)(item - items), error_name(code));
    answer_check(item, code, sqlstate);
    if (mono_ms_between(by, sim_now()) > SLACK_MS)
        sim_fail("item %d was answered %lld ms late", (int)(item - items), (long long)mono_ms_between(by, sim_now()));
}

static Item *item_new(void)
{
    Item *item = &items[item_count++];

    if (item_count > ITEMS_MAX)
        sim_fail("more than %d items", ITEMS_MAX);
    *item = (Item){.bad      = sim_chance(60),
                   .weight   = (size_t)sim_between(0, 40),
                   .deadline = deadline_in_ms(sim_chance(200) ? sim_between(0, 60) : sim_between(60, 4000))};
    if (sim_chance(100))
        item->locked_until = mono_plus_ms(sim_now(), sim_between(1, 2000));
    return item;
}

/* ---- the network thread ---- */

static ErrorCode wire_resumed(void *app, Request *request, Response *response, Error *reterr)
{
    Wire *wire = request_state(request);

    (void)app, (void)response, (void)reterr;
    if (!wire->handled)
        sim_fail("a request is resumed before its handler has returned");
    if (wire->item->answers != 1)
        sim_fail("a request is resumed after %d answers", wire->item->answers);
    if (wire->resumed++)
        sim_fail("a request is resumed twice");
    return OK;
}

static void wire_gone(void *state)
{
    Wire *wire = state;

    if (wire->gone++ || wire->resumed || !wire->hung_up)
        sim_fail("on_gone: %d times, after %d resumes", wire->gone, wire->resumed);
}

static void wire_sent(void *state, bool delivered)
{
    Wire *wire = state;

    (void)delivered;
    if (wire->sent++ || !wire->resumed)
        sim_fail("on_sent: %d times, after %d resumes", wire->sent, wire->resumed);
}

static void wire_done(void *item, const Error *error)
{
    Item *own = item;

    item_answered(own, error->code, error->sqlstate);
    request_resume(own->wire->request);
}

void loop_post(Loop *loop, Peer *peer)
{
    (void)loop;
    mutex_lock(&net_mutex);
    for (int i = 0; i < wire_count; i++)
        if (wires[i].peer == peer) {
            if (wires[i].posted)
                sim_fail("a request is handed back twice");
            wires[i].posted = true;
        }
    cond_signal(&net_changed);
    mutex_unlock(&net_mutex);
}

/* As dispatch_end() and what the connection does after it. */
static void wire_end(Wire *wire)
{
    atomic_store(&wire->request->watched, false);
    (void)wire->request->suspend.on_resume(NULL, wire->request, NULL, NULL);
    atomic_fetch_sub(&net_loop->suspended, 1);
    if (wire->noticed && !wire->gone)
        sim_fail("a client hung up, and its handler was not called");
    request_sent(wire->request);
}

/* As dispatch_run(). Others go on at every turn. */
static void wire_handle(Wire *wire)
{
    const Suspend suspend = {.on_resume = wire_resumed, .on_closed = wire_gone, .on_sent = wire_sent};

    atomic_store(&wire->request->holders, 1);
    request_suspend(wire->request, &suspend, wire);
    combiner_submit(combiner, wire->item, wire->item->deadline, wire_done);
    clock_sleep_until((Deadline){sim_now()});
    wire->handled = true;
    if (request_let_go(wire->request))
        wire_end(wire);
}

/* Under the mutex, which it leaves: see to one thing that has happened. */
static void net_step(void)
{
    for (int i = 0; i < wire_count; i++) {
        Wire *wire    = &wires[i];
        bool  arrived = wire->arrived, posted = wire->posted;
        bool  hung_up = wire->hung_up && wire->handled && !wire->sent &&
                       (!wire->noticed || sim_chance(200)); /* epoll repeats itself */

        if (!arrived && !posted && !hung_up)
            continue;
        wire->arrived = wire->posted = false;
        mutex_unlock(&net_mutex);
        if (arrived) {
            wire_handle(wire);
        } else if (hung_up && !posted) {
            wire->noticed = true;
            (void)request_closed(wire->request);
        } else {
            wire_end(wire);
        }
        mutex_lock(&net_mutex);
        cond_signal(&wire->changed);
        return;
    }
}

static bool net_has_more(void)
{
    for (int i = 0; i < wire_count; i++)
        if (wires[i].arrived || wires[i].posted ||
            (wires[i].hung_up && wires[i].handled && !wires[i].noticed && !wires[i].sent))
            return true;
    return false;
}

static void *net_body(void *context)
{
    (void)context;
    mutex_lock(&net_mutex);
    while (!net_stopping) {
        if (net_has_more())
            net_step();
        else
            cond_wait(&net_changed, &net_mutex, deadline_never());
    }
    mutex_unlock(&net_mutex);
    return NULL;
}

/* ---- clients ---- */

static void client_suspended(Item *item)
{
    Deadline hangs_up = sim_chance(300) ? deadline_in_ms(sim_between(0, 500)) : deadline_never();
    Wire    *wire;

    mutex_lock(&net_mutex);
    wire  = &wires[wire_count++];
    *wire = (Wire){.item = item, .arrived = true};
    cond_init(&wire->changed);
    wire->peer          = memory_new(1, sizeof *wire->peer);
    wire->request       = memory_new(1, sizeof *wire->request);
    wire->peer->loop    = net_loop;
    wire->request->peer = wire->peer;
    item->wire          = wire;
    cond_signal(&net_changed);
    while (!wire->sent) {
        if (!cond_wait(&wire->changed, &net_mutex, wire->hung_up ? deadline_never() : hangs_up) &&
            deadline_passed(hangs_up)) {
            wire->hung_up = true;
            cond_signal(&net_changed);
        }
    }
    mutex_unlock(&net_mutex);
}

static void client_waits(Item *item)
{
    Error     error = {0};
    ErrorCode code  = combiner_run(combiner, item, item->deadline, &error);

    item_answered(item, code, error.sqlstate);
}

static void *client_body(void *context)
{
    int calls = sim_between(1, 12);

    (void)context;
    for (int i = 0; i < calls; i++) {
        Item *item;

        if (sim_chance(500))
            clock_sleep_ms(sim_between(0, 300));
        item = item_new();
        if (sim_chance(600))
            client_suspended(item);
        else
            client_waits(item);
    }
    return NULL;
}

/* ---- what holds at every moment ---- */

static Mono due_since;

static void look(void)
{
    int  quick = 0, carried = 0;
    bool due;

    if (!combiner || combiner->mutex.owner) /* the thread that holds the mutex is changing it */
        return;
    for (const CombinerEntry *entry = combiner->queue.first; entry; entry = entry->next)
        if (mono_before(entry->deadline.at, sim_now()))
            sim_fail("an item is queued past its deadline");
    for (int i = 0; i < COMBINER_SLOTS_MAX; i++) {
        const Slot *slot = &combiner->slots[i];

        if (slot->count == 0 || mono_ms_between(slot->began, sim_now()) >= options.slow_ms)
            continue;
        quick++;
        carried += slot->count;
    }
    if (quick > options.slots)
        sim_fail("%d batches run that are not slow", quick);
    due = combiner->queue.count > 0 && combiner->running < options.slots_max &&
          (quick == 0 || (quick < options.slots && combiner->queue.count * 2 >= carried));
    if (!due)
        due_since = (Mono){0};
    else if (due_since.ns == 0)
        due_since = sim_now();
    else if (mono_before(due_since, sim_now()))
        sim_fail("%d items are queued and no batch starts", combiner->queue.count);
}

/* ---- a run ---- */

static void *run_body(void *context)
{
    pthread_t net, clients[CLIENTS_MAX];
    int       count = sim_between(1, CLIENTS_MAX);

    (void)context;
    item_count = wire_count = batches = 0;
    net_stopping                      = false;
    due_since                         = (Mono){0};
    limit_max                         = sim_chance(500) ? 1000 : sim_between(1, 4);
    options                           = (CombinerOptions){.run        = batch_body,
                                                          .slots_max  = sim_between(1, 4),
                                                          .slow_ms    = 50,
                                                          .batch_max  = sim_chance(500) ? 1000 : sim_between(1, 6),
                                                          .queue_max  = sim_chance(800) ? 1000 : sim_between(1, 4),
                                                          .weigh      = item_weight,
                                                          .weight_max = 100};
    options.slots                     = sim_between(1, options.slots_max < 2 ? options.slots_max : 2);
    net_loop                          = memory_new(1, sizeof *net_loop);
    mutex_init(&net_mutex);
    cond_init(&net_changed);
    combiner = combiner_new(&options);
    net      = thread_start("network", net_body, NULL);
    for (int i = 0; i < count; i++)
        clients[i] = thread_start("client", client_body, NULL);
    for (int i = 0; i < count; i++)
        thread_join(clients[i]);
    clock_sleep_ms(10000); /* what is under way comes to its end */
    mutex_lock(&net_mutex);
    net_stopping = true;
    cond_signal(&net_changed);
    mutex_unlock(&net_mutex);
    thread_join(net);
    combiner_free(take(combiner));
    for (int i = 0; i < item_count; i++)
        if (items[i].answers != 1)
            sim_fail("item %d was answered %d times", i, items[i].answers);
    if (atomic_load(&net_loop->suspended) != 0)
        sim_fail("%d requests are still suspended", atomic_load(&net_loop->suspended));
    for (int i = 0; i < wire_count; i++) {
        if (wires[i].resumed != 1 || wires[i].sent != 1)
            sim_fail("a request was resumed %d times and ended %d times", wires[i].resumed, wires[i].sent);
        cond_done(&wires[i].changed);
        free(wires[i].peer);
        free(wires[i].request);
    }
    free(net_loop);
    cond_done(&net_changed);
    mutex_done(&net_mutex);
    return NULL;
}

static Mono never(void)
{
    return NEVER;
}

static Mono never_ready(int fd)
{
    (void)fd;
    return NEVER;
}

static void tick(void)
{
}

int main(int argc, char **argv)
{
    static const Outside outside = {.socket_ready = never_ready, .next_event = never, .tick = tick, .look = look};
    uint64_t             first = 1, count = 1;

    log_open(LOG_OFF, LOG_TEXT, 2);
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";

        if (strcmp(argv[i], "--trace") == 0)
            sim_tracing = true;
        else if (strcmp(argv[i], "--seed") == 0)
            first = strtoull(value, NULL, 10), i++;
        else if (strcmp(argv[i], "--count") == 0)
            count = strtoull(value, NULL, 10), i++;
        else
            return 2;
    }
    for (uint64_t seed = first; seed < first + count; seed++)
        sim_run(seed, &outside, run_body, NULL);
    printf("sim: %llu seeds from %llu, all well\n", (unsigned long long)count, (unsigned long long)first);
    return 0;
}
