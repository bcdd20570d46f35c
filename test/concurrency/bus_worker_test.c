/*
 * bus_worker_test.c - three workers of eight threads each, senders beside them, handlers that fail, leases that are taken
 * away, operators who cancel; then the equations.
 *
 *   every command has ended once          attempts add up: as many RECEIVED rows as attempts were counted
 *   completed by workers = COMPLETED      effects of the SQL handler: one per command
 */
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/sync.h"
#include "base/world.h"
#include "bus/handler.h"
#include "bus/waker.h"
#include "test/unit/bus/fixture.h"
#include "test/unit/pg/await.h"

#define WORKERS  3
#define COMMANDS 600

typedef struct {
    Worker   *worker;
    ErrorCode code;
    Error     error;
    pthread_t thread;
} Running;

static void *running_body(void *context)
{
    Running *running = context;

    running->code = worker_run(running->worker, &running->error);
    return NULL;
}

static void workers_start(Running *list, const WorkerOptions *options)
{
    for (int i = 0; i < WORKERS; i++) {
        list[i]        = (Running){.worker = worker_new(options)};
        list[i].thread = thread_start("worker", running_body, &list[i]);
    }
}

static WorkerCounts workers_end(Running *list)
{
    WorkerCounts sum = {0};

    for (int i = 0; i < WORKERS; i++) {
        WorkerCounts counts;

        thread_join(list[i].thread);
        if (list[i].code != OK)
            fail_msg("worker_run: %s", list[i].error.text);
        worker_counts(list[i].worker, &counts);
        sum.completed += counts.completed;
        sum.retried += counts.retried;
        sum.rejected += counts.rejected;
        sum.lost += counts.lost;
        worker_free(list[i].worker);
    }
    return sum;
}

/* Every third attempt fails and is retried immediately, some are rejected. */
static void moody_run(Handler *handler, Job *task, SettleItem *ret_settle)
{
    unsigned mood = world_random() % 30;

    (void)handler;
    ret_settle->outcome  = mood < 10 ? OUTCOME_RETRY : mood == 29 ? OUTCOME_REJECT : OUTCOME_COMPLETE;
    ret_settle->error    = ret_settle->outcome == OUTCOME_COMPLETE ? NULL : "moody";
    ret_settle->delay_ms = mood % 2 ? 0 : 20;
    if (mood < 3)
        clock_sleep_until(deadline_sooner(task->deadline, deadline_in_ms(5)));
}

TEST(workers_end_every_command_once_and_attempts_add_up)
{
    scoped(bus_free) Bus *bus   = bus_new(16);
    Handler               moody = {.run = moody_run};
    WorkerOptions options       = {.pool = bus->pool, .domain = "mail", .name = "w", .drain = true, .handler = &moody};
    Waker        *waker         = waker_new(bus->pool);
    Running       list[WORKERS];

    bus_send(bus, "mail", COMMANDS / 2);
    workers_start(list, &options);
    for (int i = 0; i < 10; i++) {
        bus_send(bus, "mail", COMMANDS / 20);
        waker_notify(waker, "mail");
        /* These are leased to another worker: the one that holds them now loses them, and they are handled again. */
        database_exec(bus->db, "update pawl.lease set token = pawl.lease_token(), until = now() "
                               "where id in (select id from pawl.lease order by id limit 3)");
    }
    WorkerCounts sum = workers_end(list);
    waker_free(waker);

    int64_t completed = bus_count(bus, "outcome where status = 'COMPLETED'");
    int64_t failed    = bus_count(bus, "outcome where status = 'FAILED'");
    assert_int_equal(completed + failed + bus_count(bus, "tsq"), COMMANDS);
    assert_int_equal(sum.completed, completed);
    assert_int_equal(sum.rejected, failed);
    assert_int_equal(bus_count(bus, "lease") + bus_count(bus, "ready") + bus_count(bus, "delayed"), 0);
    assert_int_equal(database_get_i64(bus->db, "select (select sum(attempts) from pawl.outcome) + "
                                               "(select coalesce(sum(attempt), 0) from pawl.tsq)"),
                     bus_count(bus, "audit where event = 'RECEIVED'"));
    assert_int_equal(bus_count(bus, "audit where event in ('COMPLETED', 'FAILED', 'MOVED_TO_TSQ')"), COMMANDS);
}

#define KEYS     7
#define KEY_EACH 60

/* Of each key: the number of the command that may run next, and whether one runs. */
typedef struct {
    Handler         handler;
    pthread_mutex_t mutex;
    int             next[KEYS];
    bool            is_running[KEYS];
    int             wrong;
} Ordered;

static void ordered_run(Handler *handler, Job *task, SettleItem *ret_settle)
{
    Ordered *ordered = (Ordered *)handler;
    int      key = 0, number = -1;
    bool     fails = world_random() % 4 == 0;

    (void)sscanf(task->command->payload, "[%d, %d]", &key, &number);
    pthread_mutex_lock(&ordered->mutex);
    ordered->wrong += ordered->is_running[key] || ordered->next[key] != number;
    ordered->is_running[key] = true;
    pthread_mutex_unlock(&ordered->mutex);
    sched_yield();
    pthread_mutex_lock(&ordered->mutex);
    ordered->is_running[key] = false;
    ordered->next[key] += fails ? 0 : 1;
    pthread_mutex_unlock(&ordered->mutex);
    ret_settle->outcome  = fails ? OUTCOME_RETRY : OUTCOME_COMPLETE;
    ret_settle->delay_ms = number % 2 ? 0 : 20;
}

TEST(workers_run_commands_of_a_key_one_at_a_time_in_order)
{
    scoped(bus_free) Bus *bus     = bus_new(16);
    Ordered               ordered = {.handler = {.run = ordered_run}, .mutex = PTHREAD_MUTEX_INITIALIZER};
    Running               list[WORKERS];

    database_exec(bus->db,
                  "select count(*) from pawl.send('mail', array_fill('t'::text, '{420}'), "
                  "array(select jsonb_build_array(n % 7, n / 7) from generate_series(0, 419) n order by n), "
                  "p_max_attempts => array_fill(1000::smallint, '{420}'), "
                  "p_priorities => array(select (n % 10)::smallint from generate_series(0, 419) n order by n), "
                  "p_order_keys => array(select 'k' || n % 7 from generate_series(0, 419) n order by n))");
    workers_start(
        list,
        &(WorkerOptions){.pool = bus->pool, .domain = "mail", .name = "w", .drain = true, .handler = &ordered.handler});
    assert_int_equal(workers_end(list).completed, KEYS * KEY_EACH);
    assert_int_equal(ordered.wrong, 0);
    for (int key = 0; key < KEYS; key++)
        assert_int_equal(ordered.next[key], KEY_EACH);
    assert_int_equal(bus_count(bus, "parked") + bus_count(bus, "order_turn") + bus_count(bus, "order_handover"), 0);
}

TEST(workers_with_sql_handlers_have_each_effect_once)
{
    scoped(bus_free) Bus *bus     = bus_new(16);
    Handler              *handler = NULL;
    Error                 error   = {0};
    Running               list[WORKERS];

    database_exec(bus->db, "create table effect (command_id uuid); "
                           "create function public.pay(payload jsonb, command_id uuid) returns jsonb language sql as "
                           "$$ insert into effect values (command_id) returning '1'::jsonb $$");
    assert_ok(handler_sql_new(bus->pool, soon(), "public.pay", /* shares= */ true, &handler, &error));
    bus_send(bus, "mail", COMMANDS / 2);
    workers_start(
        list, &(WorkerOptions){.pool = bus->pool, .domain = "mail", .name = "w", .drain = true, .handler = handler});
    assert_int_equal(workers_end(list).completed, COMMANDS / 2);
    handler_sql_free(handler);
    assert_int_equal(database_get_i64(bus->db, "select count(*) from effect"), COMMANDS / 2);
    assert_int_equal(database_get_i64(bus->db, "select count(distinct command_id) from effect"), COMMANDS / 2);
}

/* Programs that are stopped while they run, by the clock and by operators. */
TEST(workers_stop_programs_from_another_thread)
{
    scoped(bus_free) Bus              *bus     = bus_new(16);
    scoped(handler_exec_free) Handler *handler = handler_exec_new("exec sleep 1000");
    Running                            list[WORKERS];

    bus_send(bus, "mail", 6);
    workers_start(list, &(WorkerOptions){.pool        = bus->pool,
                                         .domain      = "mail",
                                         .name        = "w",
                                         .concurrency = 1,
                                         .lease_ms    = 1000,
                                         .timeout_ms  = 1500,
                                         .handler     = handler});
    await(bus_count(bus, "lease") >= 3);
    database_exec(bus->db, "select * from pawl.cancel(array(select c.command_id from pawl.command c join pawl.lease l "
                           "using (id)), 'no', 'ann')");
    await(bus_count(bus, "outcome where status = 'CANCELED'") >= 3);
    await(bus_count(bus, "audit where event = 'RETRY_SCHEDULED' and details ->> 'error' like 'handler ran longer%'") >
              0 ||
          bus_count(bus, "outcome") == 6);
    for (int i = 0; i < WORKERS; i++)
        worker_stop(list[i].worker, deadline_in_ms(100));
    workers_end(list);
    assert_int_equal(bus_count(bus, "lease"), 0);
}
