/*
 * sim.c - pool, janitor, breaker, retry and transactions against a server and a schedule that a seed makes up.
 *
 *     sim [--seed FIRST] [--count N] [--trace] [--mutant NAME]
 *     sim --mutants          every planted bug must be found
 *
 * Held at every moment: see watch.c. Held for every call:
 *   1. It returns by its deadline.
 *   2. OK: committed, a keyed one exactly once however often its key was sent. ERR_UNKNOWN: committed or not. Anything
 *      else: not committed. Nothing is ever committed twice.
 *      These hold although a standby that lacks what was not confirmed may take over.
 *   3. While the breaker is open and the next probe comes after its deadline it is refused at once.
 *   4. It leaves no more memory behind than one try takes.
 * Held in the end: 36 s after the server is well again every call succeeds, a drain is complete, no connection is left.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/log.h"
#include "pg/tx.h"
#include "test/sim/fiber.h"
#include "test/sim/mutant.h"
#include "test/sim/server.h"
#include "test/sim/watch.h"

#define CLIENTS_MAX    20
#define RECOVERY_MS    36000
#define MUTANT_SEEDS   2000
#define DEADLINE_SLACK 1 /* ms */
#define TRY_BYTES      4096

typedef enum { OP_KEYED, OP_UNKEYED, OP_READ, OP_CALL_KEYED, OP_CALL_UNKEYED, OP_CALL_READ, OP_KIND_COUNT } OpKind;

typedef struct {
    OpKind  kind;
    int64_t key;
    bool    refuse; /* the body says no after its work */
    bool    limit;  /* from its second try on the body fails by itself, before it has asked anything */
    int     tries;
} Op;

/* The results that callers got for a key. */
typedef struct {
    bool keyed;
    int  ok, unknown;
} Results;

static Pool   *pool;
static Results results[KEYS_MAX];
static int     keys_used;

/* ---- one call ---- */

typedef struct {
    int64_t value;
} Value;
#define VALUE_COLUMNS(X, T) X(T, I64, value)
DB_SHAPE(value, Value, VALUE_COLUMNS);

static const char *op_sql(OpKind kind)
{
    static const char *const texts[] = {"put $1", "add $1", "get $1"};

    return texts[kind % 3];
}

static ErrorCode op_body(Tx *tx, void *context, Error *reterr)
{
    Op     *op    = context;
    int64_t value = 0;

    (void)arena_alloc(tx->arena, TRY_BYTES);
    if (++op->tries > 1 && op->limit) {
        (void)fail(reterr, ERR_LIMIT, "a limit of our own");
        error_set_sqlstate(reterr, mutant == MUTANT_OWN_SETTLES ? "22023" : "");
        return ERR_LIMIT;
    }
    TRY(db_get_i64(tx, op_sql(op->kind), DB_ARGS(db_i64(op->key)), &value, reterr));
    /* An earlier try stored the reply of a key that already exists. */
    if (op->refuse && !(op->kind == OP_KEYED && value == 1))
        return fail(reterr, ERR_CONFLICT, "refused by the body");
    return OK;
}

static ErrorCode op_run(Op *op, const TxOptions *options, Error *reterr)
{
    Value value;

    if (op->kind < OP_CALL_KEYED)
        return tx_run(pool, options, op_body, op, reterr);
    return db_call(pool, options, op_sql(op->kind), DB_ARGS(db_i64(op->key)), &value_shape, &value, reterr);
}

/* A new key, or for a keyed operation now and then one that another caller has sent. */
static int64_t key_choose(OpKind kind)
{
    if (kind % 3 == OP_KEYED && keys_used > 0 && sim_chance(200))
        for (int tries = 0; tries < 8; tries++) {
            int key = sim_between(0, keys_used - 1);

            if (results[key].keyed)
                return key;
        }
    if (keys_used == KEYS_MAX)
        sim_fail("more than %d keys", KEYS_MAX);
    results[keys_used] = (Results){.keyed = kind % 3 == OP_KEYED};
    return keys_used++;
}

static void result_record(int64_t key, ErrorCode code)
{
    if (code == OK)
        results[key].ok++;
    else if (code == ERR_UNKNOWN)
        results[key].unknown++;
}

static ErrorCode op_do(Arena *arena, int deadline_ms)
{
    OpKind    kind    = (OpKind)sim_between(0, OP_KIND_COUNT - 1);
    Op        op      = {.kind   = kind,
                         .key    = key_choose(kind),
                         .refuse = sim_chance(50) && deadline_ms < 10000,
                         .limit  = sim_chance(100) && deadline_ms < 10000};
    TxOptions options = {.name      = "op",
                         .deadline  = deadline_in_ms(deadline_ms),
                         .arena     = arena,
                         .urgent    = sim_chance(100),
                         .keyed     = kind % 3 == OP_KEYED,
                         .read_only = kind % 3 == OP_READ};
    Mono      start   = sim_now();
    Breaker   before  = pool->breaker;
    size_t    used    = arena_used(arena);
    Error     error   = {0};
    ErrorCode code;

    sim_trace("begins %s of %lld, %d ms", op_sql(kind), (long long)op.key, deadline_ms);
    code = op_run(&op, &options, &error);
    sim_trace("ends %lld: %s %s", (long long)op.key, error_name(code), error.text);
    if (deadline_left_ms(options.deadline) == 0 && mono_ms_between(options.deadline.at, sim_now()) > DEADLINE_SLACK)
        sim_fail("a call of %d ms took %lld ms", deadline_ms, (long long)mono_ms_between(start, sim_now()));
    if (arena_used(arena) > used + TRY_BYTES + 1024)
        sim_fail("a call left %zu bytes behind", arena_used(arena) - used);
    if (before.state == BREAKER_OPEN && before.opened_at.ns == pool->breaker.opened_at.ns && sim_now().ns != start.ns &&
        !mono_before(mono_plus_ms(before.opened_at, before.open_ms), options.deadline.at))
        sim_fail("a call was not refused at once by the open breaker: %s", error_name(code));
    if (kind % 3 != OP_READ)
        result_record(op.key, code);
    return op.refuse && code == ERR_CONFLICT ? OK : code;
}

/* ---- threads ---- */

static void *client_run(void *context)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    int                       calls = sim_between(1, 6);

    (void)context;
    for (int i = 0; i < calls; i++) {
        if (sim_chance(700))
            clock_sleep_ms(sim_between(0, 5000));
        (void)op_do(arena, sim_chance(100) ? sim_between(0, 50) : sim_between(50, 9000));
        arena_reset(arena);
    }
    return NULL;
}

static void *well_run(void *context)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);

    (void)context;
    for (int i = 0; i < 2; i++) {
        ErrorCode code = op_do(arena, 20000);

        if (code != OK)
            sim_fail("a call failed although the server has been well for %d ms: %s", RECOVERY_MS, error_name(code));
    }
    return NULL;
}

static void threads_run(ThreadBody *body, int count)
{
    pthread_t threads[CLIENTS_MAX];

    for (int i = 0; i < count; i++) {
        char name[16];

        snprintf(name, sizeof name, "client %d", i);
        threads[i] = thread_start(name, body, NULL);
    }
    for (int i = 0; i < count; i++)
        thread_join(threads[i]);
}

static void *stop_run(void *context)
{
    (void)context;
    clock_sleep_ms(sim_between(0, 10000));
    sim_trace("drains early");
    (void)pool_drain(pool, deadline_in_ms(sim_between(0, 3000)));
    return NULL;
}

static void results_check(void)
{
    for (int key = 0; key < keys_used; key++) {
        int commits = server_commits(key);

        if (commits > 1)
            sim_fail("operation %d was committed %d times", key, commits);
        if (results[key].ok && commits != 1)
            sim_fail("operation %d was acknowledged but not committed", key);
        if (!results[key].ok && !results[key].unknown && commits != 0)
            sim_fail("operation %d was committed, but every caller got an error", key);
    }
}

static void *run_body(void *context)
{
    PoolOptions options    = {.conninfo = "postgresql://sim@server/sim", .size_max = sim_between(1, 5)};
    bool        stop_early = sim_chance(100);
    pthread_t   stopper    = 0;
    Error       error;

    (void)context;
    keys_used = 0;
    server_start();
    if (sim_chance(200))
        options.lifetime_ms_max = sim_between(100, 5000);
    if (sim_chance(300) && options.size_max > 1)
        options.size_reserved = 1;
    if (sim_chance(200))
        options.idle_ms_max = sim_between(100, 5000);
    if (sim_chance(300))
        options.check_ms = sim_between(200, 5000);
    if (pool_new(&options, &pool, &error) != OK)
        sim_fail("no pool: %s", error.text);
    watch_begin(pool);
    if (stop_early)
        stopper = thread_start("stopper", stop_run, NULL);
    threads_run(client_run, sim_chance(800) ? sim_between(1, 6) : sim_between(7, CLIENTS_MAX));
    if (stop_early) {
        thread_join(stopper);
    } else {
        clock_sleep_until((Deadline){mono_plus_ms(server_healthy_at(), RECOVERY_MS)});
        threads_run(well_run, options.size_max + 2);
    }
    if (!pool_drain(pool, deadline_in_ms(10000)))
        sim_fail("the pool cannot be drained");
    watch_end();
    pool_free(take(pool));
    if (server_sessions_of_client() != 0)
        sim_fail("%d connections are left", server_sessions_of_client());
    clock_sleep_ms(60000); /* commits under way come to their end */
    results_check();
    return NULL;
}

/* ---- seeds ---- */

static const Outside outside = {.socket_ready = server_socket_ready,
                                .socket_shut  = server_socket_shut,
                                .next_event   = server_next_event,
                                .tick         = server_tick,
                                .look         = watch_look};

static void seeds_run(uint64_t first, uint64_t count)
{
    for (uint64_t seed = first; seed < first + count; seed++)
        sim_run(seed, &outside, run_body, NULL);
    printf("sim: %llu seeds from %llu, all well\n", (unsigned long long)count, (unsigned long long)first);
}

/* In a process of its own, because a failed run ends its process. true: the bug was found. */
static bool mutant_is_found(Mutant which)
{
    int   status;
    pid_t child = fork();

    if (child == 0) {
        mutant = which;
        seeds_run(1, MUTANT_SEEDS);
        _exit(0);
    }
    if (child < 0 || waitpid(child, &status, 0) != child)
        abort();
    return WIFEXITED(status) && WEXITSTATUS(status) == 1;
}

static int mutants_run(void)
{
    int missed = 0;

    for (int i = MUTANT_NONE + 1; i < MUTANT_COUNT; i++) {
        bool found = mutant_is_found((Mutant)i);

        printf("sim: mutant \"%s\" was %s\n", mutant_names[i], found ? "found" : "not found");
        fflush(stdout);
        missed += !found;
    }
    return missed ? 1 : 0;
}

static Mutant mutant_named(const char *name)
{
    for (int i = 0; i < MUTANT_COUNT; i++)
        if (strcmp(mutant_names[i], name) == 0)
            return (Mutant)i;
    fprintf(stderr, "sim: there is no mutant \"%s\"\n", name);
    exit(2);
}

int main(int argc, char **argv)
{
    uint64_t first = 1, count = 0;

    log_open(LOG_OFF, LOG_TEXT, 2);
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;

        if (strcmp(argv[i], "--mutants") == 0)
            return mutants_run();
        if (strcmp(argv[i], "--trace") == 0) {
            sim_tracing = true;
            setvbuf(stdout, NULL, _IOLBF, 0);
        } else if (value && strcmp(argv[i], "--seed") == 0) {
            first = strtoull(argv[++i], NULL, 10);
        } else if (value && strcmp(argv[i], "--count") == 0) {
            count = strtoull(argv[++i], NULL, 10);
        } else if (value && strcmp(argv[i], "--mutant") == 0) {
            mutant = mutant_named(argv[++i]);
        } else {
            fprintf(stderr, "usage: sim [--seed FIRST] [--count N] [--trace] [--mutant NAME] | sim --mutants\n");
            return 2;
        }
    }
    seeds_run(first, count ? count : 1);
    return 0;
}
