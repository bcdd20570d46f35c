/*
 * run_test.c - activations: what is recorded is not run again, whatever breaks; waits, responses and timers resume a process once.
 */
#include "process/run.h"

#include <string.h>

#include "base/fault.h"
#include "base/sync.h"
#include "pg/tx.h"
#include "process/handler.h"
#include "sql.h"
#include "test/unit/bus/fixture.h"
#include "test/unit/pg/await.h"

#define STEPS 3

/* ---- round trips; the linker puts this before db_call_many() ---- */

static atomic_int loads, writes;

ErrorCode __real_db_call_many(Pool *pool, const TxOptions *options, const char *sql, DbArgs args, const DbShape *shape,
                              void *ret_rows, int *ret_count, Error *reterr);
ErrorCode __wrap_db_call_many(Pool *pool, const TxOptions *options, const char *sql, DbArgs args, const DbShape *shape,
                              void *ret_rows, int *ret_count, Error *reterr);
ErrorCode __wrap_db_call_many(Pool *pool, const TxOptions *options, const char *sql, DbArgs args, const DbShape *shape,
                              void *ret_rows, int *ret_count, Error *reterr)
{
    atomic_fetch_add(&loads, strcmp(sql, sql_process_load) == 0);
    atomic_fetch_add(&writes, strcmp(sql, sql_process_write) == 0);
    return __real_db_call_many(pool, options, sql, args, shape, ret_rows, ret_count, reterr);
}

/* ---- programs ---- */

/* A process of three steps that counts how often each was run; the second one waits for "go" first, if `waits` is set. */
typedef struct {
    atomic_int run[STEPS];
    bool       waits;
} Program;

static const char *const step_names[STEPS] = {"first", "second", "third"};

static ErrorCode program_body(Run *run, Job *job, const LoadedProcess *loaded, void *context, BodyVerdict *ret_verdict,
                              Error *reterr)
{
    Program           *program = context;
    ResponseOf         go      = response_signal("go");
    const char *const *payloads;

    (void)job;
    (void)loaded;
    for (int i = 0; i < STEPS; i++) {
        RunVerdict verdict;
        RunRecord  record = {.id = record_of(step_names[i]), .result = "{\"done\": true}"};

        if (run_result(run, record.id))
            continue;
        if (program->waits && i == 1 && run_responses(run, go, &payloads) == 0) {
            run_wait(run, record_of("second"), WAIT_ASYNC, &go, 1, 0);
            ret_verdict->end = BODY_WAITS;
            return OK;
        }
        atomic_fetch_add(&program->run[i], 1);
        TRY(run_record(run, &record, &verdict, reterr));
        if (verdict != RUN_OK) {
            ret_verdict->end = BODY_STOPS;
            return OK;
        }
    }
    *ret_verdict = (BodyVerdict){.end = BODY_ENDS, .outcome = OUTCOME_COMPLETE, .result = "{\"ended\": 1}"};
    return OK;
}

static void *worker_body(void *context)
{
    Error     error = {0};
    ErrorCode code  = worker_run(context, &error);

    if (code != OK)
        print_error("worker_run: %s\n", error.text);
    return NULL;
}

typedef struct {
    Handler  *handler;
    Worker   *worker;
    pthread_t thread;
} Running;

static void running_start(Running *running, Bus *bus, Program *program)
{
    running->handler = process_handler_new(bus->pool, program_body, program);
    running->worker  = worker_new(&(WorkerOptions){.pool        = bus->pool,
                                                   .domain      = "process:shop",
                                                   .name        = "test",
                                                   .handler     = running->handler,
                                                   .lease_ms    = 1000,
                                                   .concurrency = 8});
    running->thread  = thread_start("worker", worker_body, running->worker);
}

static void running_stop(Running *running)
{
    worker_stop(running->worker, deadline_in_ms(5000));
    thread_join(running->thread);
    worker_free(running->worker);
    process_handler_free(running->handler);
}

static void start(Bus *bus, int count)
{
    database_exec(bus->db,
                  arena_print(bus->arena,
                              "select count(pawl.start('order', p_domain => 'shop')) from generate_series(1, %d)",
                              count));
}

TEST(process_of_three_steps_is_recorded_and_ends)
{
    scoped(bus_free) Bus *bus     = bus_new(8);
    Program               program = {0};
    Running               running;

    start(bus, 100);
    running_start(&running, bus, &program);
    await(bus_count(bus, "outcome where status = 'COMPLETED'") == 100);
    running_stop(&running);
    assert_int_equal(bus_count(bus, "process_step"), 300);
    for (int i = 0; i < STEPS; i++)
        assert_int_equal(atomic_load(&program.run[i]), 100);
    assert_int_equal(bus_count(bus, "lease"), 0);
}

/* One round trip for each record, one for the end, and none besides: the claim has read it. */
TEST(process_is_loaded_by_its_claim)
{
    scoped(bus_free) Bus *bus     = bus_new(8);
    Program               program = {.waits = true};
    Running               running;

    atomic_store(&loads, 0);
    atomic_store(&writes, 0);
    start(bus, 1);
    running_start(&running, bus, &program);
    await(bus_count(bus, "delayed where due > now() + interval '1 day'") == 1);
    assert_int_equal(atomic_load(&writes), 2); /* the first step, and the suspension */
    database_exec(bus->db, "select pawl.signal(c.command_id, 'go') from pawl.command c");
    await(bus_count(bus, "outcome where status = 'COMPLETED'") == 1);
    running_stop(&running);
    assert_int_equal(atomic_load(&writes), 5);
    assert_int_equal(atomic_load(&loads), 0);
    for (int i = 0; i < STEPS; i++)
        assert_int_equal(atomic_load(&program.run[i]), 1);
}

/* A claim reads what is small. The others are loaded together, after it. */
TEST(process_that_is_large_is_loaded_after_its_claim)
{
    scoped(bus_free) Bus *bus     = bus_new(8);
    Program               program = {0};
    Running               running;

    atomic_store(&loads, 0);
    start(bus, 2);
    database_exec(bus->db, "update pawl.process set state = jsonb_build_object('text', repeat('x', 100000)) "
                           "where id = (select max(id) from pawl.process)");
    running_start(&running, bus, &program);
    await(bus_count(bus, "outcome where status = 'COMPLETED'") == 2);
    running_stop(&running);
    assert_int_equal(atomic_load(&loads), 1);
    for (int i = 0; i < STEPS; i++)
        assert_int_equal(atomic_load(&program.run[i]), 2);
}

/* What a claim cannot read does not stop it: each process is loaded by itself, and says what is wrong. */
TEST(process_that_cannot_be_loaded_does_not_stop_claims)
{
    scoped(bus_free) Bus *bus     = bus_new(8);
    Program               program = {0};
    Running               running;

    start(bus, 1);
    database_exec(bus->db, "alter function pawl.process_load(bigint[], bigint[], bigint) rename to process_loaded");
    running_start(&running, bus, &program);
    await(bus_count(bus, "tsq where error like '%pawl.process_load%'") == 1);
    database_exec(bus->db, "alter function pawl.process_loaded(bigint[], bigint[], bigint) rename to process_load");
    start(bus, 1);
    await(bus_count(bus, "outcome where status = 'COMPLETED'") == 1);
    running_stop(&running);
    assert_int_equal(bus_count(bus, "lost_attempt"), 0);
}

TEST(process_that_waits_is_resumed_once_by_its_response)
{
    scoped(bus_free) Bus *bus     = bus_new(8);
    Program               program = {.waits = true};
    Running               running;

    start(bus, 20);
    running_start(&running, bus, &program);
    await(bus_count(bus, "delayed") == 20);
    assert_int_equal(bus_count(bus, "process where wait = 'WAITING_FOR_ASYNC' and step = 'second'"), 20);
    database_exec(bus->db,
                  "select count(*) from (select pawl.signal(c.command_id, 'go', '{}', 'k' || n) from pawl.command c, "
                  "generate_series(1, 5) n) s");
    await(bus_count(bus, "outcome where status = 'COMPLETED'") == 20);
    running_stop(&running);
    for (int i = 0; i < STEPS; i++)
        assert_int_equal(atomic_load(&program.run[i]), 20);
}

#ifdef PAWL_FAULTS
/* A step whose record was written is not run again; one whose record was lost is. */
TEST(process_continues_after_a_failure_at_each_point)
{
    static const struct {
        const char *point;
        int         again; /* steps that are run a second time */
    } rows[] = {
        {"process.record.before",  1},
        {"process.record.after",   0},
        {"process.suspend.before", 0},
        {"process.end.before",     0},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        scoped(bus_free) Bus *bus     = bus_new(8);
        Program               program = {.waits = true};
        Running               running;
        int                   total = 0;

        start(bus, 1);
        fault_arm(rows[i].point, 1);
        running_start(&running, bus, &program);
        await(bus_count(bus, "delayed where due > now() + interval '1 day'") == 1);
        database_exec(bus->db, "select pawl.signal(c.command_id, 'go') from pawl.command c");
        await(bus_count(bus, "outcome where status = 'COMPLETED'") == 1);
        running_stop(&running);
        assert_true(fault_was_hit());
        fault_arm_nth(0);
        for (int s = 0; s < STEPS; s++)
            total += atomic_load(&program.run[s]);
        assert_int_equal(total, STEPS + rows[i].again);
        assert_int_equal(bus_count(bus, "process_step"), STEPS);
    }
}
#endif
