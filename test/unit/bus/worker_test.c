/*
 * worker_test.c - claims, runs, settles, keeps leases, stops; with handlers of its own in C.
 */
#include "bus/worker.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/log.h"
#include "base/sync.h"
#include "bus/handler.h"
#include "bus/metric.h"
#include "bus/waker.h"
#include "bus/worker_internal.h"
#include "pg/metric.h"
#include "test/unit/bus/fixture.h"
#include "test/unit/pg/await.h"

/* A handler that waits until it is released, and records what it met. */
typedef struct {
    Handler     base;
    atomic_bool open;
    atomic_int  begun, running, running_max, stopped;
    Outcome     outcome;
    const char *result;
} Held;

static void held_run(Handler *base, Job *task, SettleItem *ret_settle)
{
    Held *held    = (Held *)base;
    int   running = atomic_fetch_add(&held->running, 1) + 1;

    if (running > atomic_load(&held->running_max))
        atomic_store(&held->running_max, running);
    atomic_fetch_add(&held->begun, 1);
    while (!atomic_load(&held->open) && !job_is_stopped(task))
        clock_sleep_ms(2);
    atomic_fetch_sub(&held->running, 1);
    ret_settle->outcome = job_is_stopped(task) ? OUTCOME_RETRY : held->outcome;
    ret_settle->result  = held->result;
}

static void held_stop(Handler *base, Job *task)
{
    (void)task;
    atomic_fetch_add(&((Held *)base)->stopped, 1);
}

#define HELD(...)                                                 \
    {                                                             \
        .base = {.run = held_run, .stop = held_stop}, __VA_ARGS__ \
    }

/* A worker on a thread of its own. */
typedef struct {
    Worker     *worker;
    ErrorCode   code;
    Error       error;
    pthread_t   thread;
    atomic_bool ended;
} Running;

static void *running_body(void *context)
{
    Running *running = context;

    running->code = worker_run(running->worker, &running->error);
    atomic_store(&running->ended, true);
    return NULL;
}

static void running_start_in(Running *running, Bus *bus, const char *domain, WorkerOptions options)
{
    options.pool    = bus->pool;
    options.domain  = domain;
    options.name    = "test";
    *running        = (Running){.worker = worker_new(&options)};
    running->thread = thread_start("worker", running_body, running);
}

static void running_start(Running *running, Bus *bus, WorkerOptions options)
{
    running_start_in(running, bus, "mail", options);
}

static WorkerCounts running_end(Running *running)
{
    WorkerCounts counts;

    thread_join(running->thread);
    if (running->code != OK)
        fail_msg("worker_run: %s", running->error.text);
    worker_counts(running->worker, &counts);
    worker_free(running->worker);
    return counts;
}

static WorkerCounts running_stop(Running *running, int grace_ms)
{
    worker_stop(running->worker, deadline_in_ms(grace_ms));
    return running_end(running);
}

/* A handler that undoes everything that shares a transaction. */
typedef struct {
    Handler    base;
    atomic_int shared, alone, most;
} Undoing;

static void undoing_run(Handler *base, Job *task, SettleItem *ret_settle)
{
    (void)task;
    atomic_fetch_add(&((Undoing *)base)->alone, 1);
    ret_settle->outcome = OUTCOME_COMPLETE;
}

static void undoing_run_shared(Handler *base, Job *const *jobs, SettleItem *const *items, int count)
{
    Undoing *undoing = (Undoing *)base;

    (void)jobs;
    (void)items;
    if (count > atomic_load(&undoing->most))
        atomic_store(&undoing->most, count);
    atomic_fetch_add(&undoing->shared, count);
}

static int undoing_most(Handler *base)
{
    (void)base;
    return 5;
}

TEST(worker_runs_alone_what_was_undone_with_others)
{
    scoped(bus_free) Bus *bus     = bus_new(8);
    Undoing               undoing = {
                      .base = {.run = undoing_run, .run_shared = undoing_run_shared, .shared_most = undoing_most}
    };
    Running running;

    bus_send(bus, "mail", 100);
    running_start(&running, bus, (WorkerOptions){.handler = &undoing.base, .concurrency = 2, .drain = true});
    WorkerCounts counts = running_end(&running);
    assert_int_equal(counts.completed, 100);
    assert_int_equal(atomic_load(&undoing.alone), 100);
    assert_true(atomic_load(&undoing.most) > 1 && atomic_load(&undoing.most) <= 5);
    assert_true(atomic_load(&undoing.shared) <= 100); /* once each, at most */
    assert_int_equal(bus_count(bus, "outcome where attempts = 1"), 100);
}

TEST(worker_shares_a_transaction_among_no_more_than_a_mebibyte_of_payloads)
{
    scoped(bus_free) Bus *bus     = bus_new(8);
    const size_t          size    = 400 << 10;
    char                 *payload = arena_alloc(bus->arena, size + 1);
    Undoing               undoing = {
                      .base = {.run = undoing_run, .run_shared = undoing_run_shared, .shared_most = undoing_most}
    };
    Running running;

    memset(payload, 'x', size);
    payload[0] = payload[size - 1] = '"';
    payload[size]                  = '\0';
    for (int i = 0; i < 60; i++) {
        SendItem  item  = bus_item("mail", "t", payload);
        SendItem *list  = &item;
        Error     error = {0};

        assert_ok(send_many(bus->pool, soon(), bus->arena, &list, 1, &error));
    }
    running_start(&running, bus, (WorkerOptions){.handler = &undoing.base, .concurrency = 2, .drain = true});
    assert_int_equal(running_end(&running).completed, 60);
    assert_int_equal(atomic_load(&undoing.most), 2);
}

TEST(worker_drains_and_completes_everything)
{
    scoped(bus_free) Bus *bus  = bus_new(8);
    Held                  held = HELD(.open = true);
    Running               running;
    SendItem              later = bus_item("mail", "t", NULL);
    SendItem             *list  = &later;
    Error                 error = {0};

    bus_send(bus, "mail", 100);
    later.delay_ms = 300; /* drained means this one too */
    assert_ok(send_many(bus->pool, soon(), bus->arena, &list, 1, &error));
    running_start(&running, bus, (WorkerOptions){.handler = &held.base, .concurrency = 4, .drain = true});
    WorkerCounts counts = running_end(&running);
    assert_int_equal(counts.completed, 101);
    assert_int_equal(counts.claimed, 101);
    assert_int_equal(counts.running + counts.waiting, 0);
    assert_true(held.running_max <= 4);
    assert_int_equal(bus_count(bus, "outcome where status = 'COMPLETED'"), 101);
    assert_int_equal(bus_count(bus, "lease") + bus_count(bus, "ready") + bus_count(bus, "delayed"), 0);
}

TEST(worker_noop_completes_every_command)
{
    scoped(bus_free) Bus *bus = bus_new(8);
    Running               running;

    bus_send(bus, "mail", 2000);
    running_start(&running, bus, (WorkerOptions){.handler = &handler_noop, .drain = true});
    WorkerCounts counts = running_end(&running);
    assert_int_equal(counts.completed, 2000);
    assert_int_equal(bus_count(bus, "outcome"), 2000);
    assert_int_equal(bus_count(bus, "audit"), 6000);
}

/* A lease with another token than its worker has: as if it had expired and been claimed again. */
#define OTHER_TOKEN                                                             \
    "create function public.other_token() returns trigger language plpgsql as " \
    "'begin new.token := pawl.lease_token(); return new; end';"                 \
    "create trigger other_token before insert on pawl.lease for each row execute function public.other_token()"

TEST(worker_logs_each_lease_that_was_lost)
{
    FILE   *file       = tmpfile();
    int64_t lost       = metric_value(&bus_metrics.settled_lost), given_up;
    char    text[8192] = "";
    Running running;

    assert_non_null(file);
    log_open(LOG_WARN, LOG_TEXT, fileno(file)); /* while no other thread runs */
    Bus *bus = bus_new(8);
    database_exec(bus->db,
                  OTHER_TOKEN "; select pawl.send('mail', 't', p_max_attempts => 1) from generate_series(1, 7)");
    running_start(&running, bus, (WorkerOptions){.handler = &handler_noop, .drain = true, .lease_ms = 200});
    WorkerCounts counts = running_end(&running);
    given_up            = bus_count(bus, "tsq");
    bus_free(bus);
    log_open(LOG_OFF, LOG_TEXT, STDERR_FILENO);
    rewind(file);
    assert_true(fread(text, 1, sizeof text - 1, file) > 0);
    fclose(file);
    assert_contains(text, "lease was lost, the outcome changed nothing");
    assert_int_equal(counts.lost, 7);
    assert_int_equal(counts.completed, 0);
    assert_int_equal(metric_value(&bus_metrics.settled_lost) - lost, 7);
    assert_int_equal(given_up, 7);
}

/* Handlers of this worker have been short, so it claims ahead. */
static void running_warm(Running *running, Bus *bus, Held *held)
{
    WorkerCounts counts;

    atomic_store(&held->open, true);
    bus_send(bus, "mail", 100);
    worker_wake(running->worker);
    await(({
        worker_counts(running->worker, &counts);
        counts.completed == 100 && counts.running == 0;
    }));
    atomic_store(&held->open, false);
}

/* Other pods may be idle: what was claimed ahead while handlers were short is released when they are not, and no attempt counts. */
TEST(worker_releases_what_it_cannot_begin_within_a_second)
{
    scoped(bus_free) Bus *bus  = bus_new(8);
    Held                  held = HELD();
    Running               running;
    WorkerCounts          counts;

    running_start(&running, bus, (WorkerOptions){.handler = &held.base, .concurrency = 3});
    running_warm(&running, bus, &held);
    bus_send(bus, "mail", 50);
    worker_wake(running.worker);
    await(({
        worker_counts(running.worker, &counts);
        counts.running == 3 && counts.released == 47;
    }));
    assert_int_equal(bus_count(bus, "lease"), 3);
    assert_int_equal(database_get_i64(bus->db, "select count(*) from pawl.ready where attempt = 0"), 47);
    atomic_store(&held.open, true);
    await(({
        worker_counts(running.worker, &counts);
        counts.completed == 150;
    }));
    assert_int_equal(running_stop(&running, 1000).completed, 150);
    assert_int_equal(bus_count(bus, "outcome where attempts > 1"), 0);
}

/* What an application's transaction has locked cannot be released: it is held until it can be, and no attempt is lost. */
TEST(worker_keeps_what_it_cannot_release)
{
    scoped(bus_free) Bus *bus  = bus_new(8);
    Held                  held = HELD();
    Running               running;
    WorkerCounts          counts;

    running_start(&running, bus, (WorkerOptions){.handler = &held.base, .concurrency = 3});
    running_warm(&running, bus, &held);
    bus_send(bus, "mail", 10);
    worker_wake(running.worker);
    await(bus_count(bus, "lease") == 10);
    database_exec(bus->db, "begin; select from pawl.lease order by id desc limit 4 for update");
    await(({
        worker_counts(running.worker, &counts);
        counts.released == 3;
    }));
    assert_int_equal(bus_count(bus, "lease"), 7);
    assert_int_equal(counts.lost, 0);
    worker_stop(running.worker, deadline_in_ms(60000));
    database_exec(bus->db, "commit");
    await(bus_count(bus, "lease") == 3);
    assert_int_equal(bus_count(bus, "ready where attempt = 0"), 7);
    atomic_store(&held.open, true);
    counts = running_end(&running);
    assert_int_equal(counts.released, 7);
    assert_int_equal(counts.lost, 0);
    assert_int_equal(bus_count(bus, "outcome where attempts > 1"), 0);
}

TEST(worker_holds_no_more_than_it_may)
{
    scoped(bus_free) Bus *bus  = bus_new(8);
    Held                  held = HELD();
    Running               running;
    WorkerCounts          counts;

    bus_send(bus, "mail", 50);
    running_start(&running, bus, (WorkerOptions){.handler = &held.base, .concurrency = 3});
    await(({
        worker_counts(running.worker, &counts);
        counts.running == 3;
    }));
    assert_int_equal(bus_count(bus, "lease"), 3);
    atomic_store(&held.open, true);
    await(({
              worker_counts(running.worker, &counts);
              counts.completed;
          }) == 50);
    assert_int_equal(running_stop(&running, 1000).completed, 50);
    assert_true(held.running_max <= 3);
}

TEST(worker_keeps_the_leases_of_long_work)
{
    scoped(bus_free) Bus *bus  = bus_new(8);
    Held                  held = HELD();
    Running               running;

    bus_send(bus, "mail", 1);
    running_start(&running, bus, (WorkerOptions){.handler = &held.base, .lease_ms = 6000});
    await(atomic_load(&held.begun) == 1);
    int64_t until = database_get_i64(bus->db, "select pawl.micros(until) from pawl.lease");
    /* Past the first lease. */
    await(database_get_i64(bus->db, "select pawl.micros(clock_timestamp())") > until);
    atomic_store(&held.open, true);
    await(bus_count(bus, "outcome") == 1);
    WorkerCounts counts = running_stop(&running, 1000);
    assert_int_equal(counts.completed, 1);
    assert_int_equal(held.begun, 1); /* no other worker took it */
    assert_int_equal(bus_count(bus, "audit where event = 'RECEIVED'"), 1);
}

/* The process may have been stopped (SIGSTOP) for longer than the lease lasts: then another worker may have the command. */
TEST(worker_begins_no_command_whose_lease_may_have_run_out)
{
    scoped(bus_free) Bus *bus  = bus_new(8);
    Held                  held = HELD();
    Running               running;
    WorkerCounts          counts;
    bool                  extended;

    fault_arm("bus.lease.over", 1);
    bus_send(bus, "mail", 1);
    running_start(&running, bus, (WorkerOptions){.handler = &held.base, .concurrency = 1, .lease_ms = 900});
    await(atomic_load(&held.begun) == 1);
    assert_true(fault_was_hit());
    fault_arm_nth(0);
    extended =
        database_get_i64(bus->db, "select count(*) from pawl.lease where until > started_at + interval '900 ms'") == 1;
    worker_counts(running.worker, &counts);
    assert_true(extended || counts.released + counts.lost > 0);
    atomic_store(&held.open, true);
    await(bus_count(bus, "outcome where status = 'COMPLETED'") == 1);
    (void)running_stop(&running, 1000);
}

TEST(worker_stops_a_handler_that_was_canceled)
{
    scoped(bus_free) Bus *bus  = bus_new(8);
    Held                  held = HELD();
    Running               running;

    bus_send(bus, "mail", 1);
    running_start(&running, bus, (WorkerOptions){.handler = &held.base, .lease_ms = 9000});
    await(atomic_load(&held.begun) == 1);
    database_exec(bus->db, "select * from pawl.cancel(array(select command_id from pawl.command), 'no more', 'ann')");
    await(atomic_load(&held.stopped) == 1);
    await(bus_count(bus, "outcome where status = 'CANCELED'") == 1);
    WorkerCounts counts = running_stop(&running, 1000);
    assert_int_equal(counts.canceled, 1);
    assert_int_equal(counts.lost, 0);
    assert_int_equal(counts.completed, 0);
}

TEST(worker_counts_a_failure_of_a_canceled_command_as_canceled)
{
    scoped(bus_free) Bus *bus      = bus_new(8);
    Held                  held     = HELD(.outcome = OUTCOME_FAIL);
    int64_t               canceled = metric_value(&bus_metrics.settled_canceled);
    Running               running;

    bus_send(bus, "mail", 1);
    running_start(&running, bus, (WorkerOptions){.handler = &held.base});
    await(atomic_load(&held.begun) == 1);
    database_exec(bus->db, "select * from pawl.cancel(array(select command_id from pawl.command), 'no more', 'ann')");
    held.open = true;
    await(bus_count(bus, "outcome where status = 'CANCELED'") == 1);
    WorkerCounts counts = running_stop(&running, 1000);
    assert_int_equal(counts.canceled, 1);
    assert_int_equal(counts.failed + counts.retried + counts.lost, 0);
    assert_int_equal(metric_value(&bus_metrics.settled_canceled) - canceled, 1);
}

TEST(worker_stops_a_handler_that_takes_too_long)
{
    scoped(bus_free) Bus *bus  = bus_new(8);
    Held                  held = HELD();
    Running               running;

    bus_send(bus, "mail", 1);
    running_start(&running, bus, (WorkerOptions){.handler = &held.base, .timeout_ms = 100});
    await(bus_count(bus, "delayed") == 1);
    assert_int_equal(held.stopped, 1);
    assert_int_equal(bus_count(bus, "audit where event = 'RETRY_SCHEDULED' and details ->> 'error' like "
                                    "'handler ran longer than 100 ms%'"),
                     1);
    assert_int_equal(running_stop(&running, 1000).retried, 1);
}

/* Decides only after it was stopped. */
typedef struct {
    Handler    base;
    Outcome    outcome;
    atomic_int begun;
} Late;

static void late_run(Handler *base, Job *task, SettleItem *ret_settle)
{
    Late *late = (Late *)base;

    atomic_fetch_add(&late->begun, 1);
    while (!job_is_stopped(task))
        clock_sleep_ms(2);
    ret_settle->outcome  = late->outcome;
    ret_settle->error    = "card refused";
    ret_settle->delay_ms = 60000;
}

/* Runs one command until its timeout or, without one, until the stop; returns how it ended. */
static const char *late_end(Bus *bus, Outcome outcome, int timeout_ms)
{
    Late    late = {.base = {.run = late_run}, .outcome = outcome};
    Running running;

    bus_send(bus, "mail", 1);
    running_start(&running, bus, (WorkerOptions){.handler = &late.base, .timeout_ms = timeout_ms});
    await(atomic_load(&late.begun) == 1);
    if (timeout_ms)
        await(bus_count(bus, "lease") == 0);
    (void)running_stop(&running, 0);
    return database_get_text(bus->db,
                             "select event || ': ' || (details ->> 'error') from pawl.audit "
                             "where details ? 'error' order by id desc limit 1",
                             bus->arena);
}

TEST(worker_keeps_what_a_handler_decided_after_it_was_stopped)
{
    scoped(bus_free) Bus *bus        = bus_new(8);
    static const int      timeouts[] = {50, 0};

    for (size_t i = 0; i < COUNT(timeouts); i++) {
        assert_string_equal(late_end(bus, OUTCOME_REJECT, timeouts[i]), "FAILED: card refused");
        assert_string_equal(late_end(bus, OUTCOME_FAIL, timeouts[i]), "MOVED_TO_TSQ: card refused");
    }
    assert_string_equal(late_end(bus, OUTCOME_RETRY, 50),
                        "RETRY_SCHEDULED: handler ran longer than 50 ms and was stopped: card refused");
}

TEST(worker_gives_back_at_the_stop_what_it_did_not_finish)
{
    scoped(bus_free) Bus *bus  = bus_new(8);
    Held                  held = HELD();
    Running               running;
    WorkerCounts          counts;

    running_start(&running, bus, (WorkerOptions){.handler = &held.base, .concurrency = 2});
    running_warm(&running, bus, &held);
    bus_send(bus, "mail", 10);
    worker_wake(running.worker);
    /* Two have begun: once it stops nothing else is. */
    await(({
        worker_counts(running.worker, &counts);
        counts.running == 2 && counts.waiting == 8;
    }));
    counts = running_stop(&running, 50);
    assert_int_equal(held.stopped, 2);
    assert_int_equal(counts.retried, 2);
    assert_int_equal(counts.released, 8);
    assert_int_equal(bus_count(bus, "lease"), 0);
    assert_int_equal(bus_count(bus, "ready"), 10); /* all of them queued again immediately */
    assert_int_equal(database_get_i64(bus->db, "select count(*) from pawl.ready where attempt > 0"), 2);
}

/* Cannot begin its first commands, say, because there are no file descriptors. */
typedef struct {
    Handler    base;
    atomic_int left; /* how many more it cannot begin */
} Unable;

static void unable_run(Handler *base, Job *task, SettleItem *ret_settle)
{
    if (atomic_fetch_sub(&((Unable *)base)->left, 1) > 0)
        task->not_begun = "no file descriptors";
    else
        ret_settle->outcome = OUTCOME_COMPLETE;
}

TEST(worker_releases_what_its_handler_could_not_begin_and_pauses)
{
    scoped(bus_free) Bus *bus    = bus_new(8);
    Unable                unable = {.base = {.run = unable_run}, .left = 1};
    Mono                  start  = clock_mono();
    Running               running;
    WorkerCounts          counts;

    database_exec(bus->db, "select pawl.send('mail', 'hello', p_max_attempts => 1) from generate_series(1, 10)");
    running_start(&running, bus, (WorkerOptions){.handler = &unable.base, .concurrency = 2, .drain = true});
    counts = running_end(&running);
    assert_int_equal(counts.completed, 10); /* although each had one attempt only */
    assert_in_range(counts.released, 1, 4);
    assert_int_equal(counts.claimed, 10 + counts.released);
    assert_true(mono_ms_between(start, clock_mono()) >= 1000);
    assert_int_equal(metric_value(&bus_metrics.handlers_running), 0);
}

/* The command's type is its outcome. */
static void obedient_run(Handler *base, Job *task, SettleItem *ret_settle)
{
    (void)base;
    while (strcmp(outcome_names[ret_settle->outcome], task->command->type) != 0)
        ret_settle->outcome++;
}

TEST(worker_counts_outcomes_in_the_metrics)
{
    static Metric *const  metrics[] = {&bus_metrics.settled_completed, &bus_metrics.settled_retried,
                                       &bus_metrics.settled_failed, &bus_metrics.settled_rejected, &bus_metrics.claimed};
    static const int      wanted[]  = {4, 3, 2, 1, 10};
    scoped(bus_free) Bus *bus       = bus_new(8);
    Handler               handler   = {.run = obedient_run};
    int64_t               before[COUNT(metrics)], calls = metric_value(&bus_metrics.settle_calls);
    Running               running;

    for (size_t i = 0; i < COUNT(metrics); i++)
        before[i] = metric_value(metrics[i]);
    database_exec(bus->db, "select pawl.send('mail', t, p_max_attempts => 1) from unnest('{complete,complete,complete,"
                           "complete,retry,retry,retry,fail,fail,reject}'::text[]) t");
    running_start(&running, bus, (WorkerOptions){.handler = &handler, .drain = true});
    running_end(&running);
    for (size_t i = 0; i < COUNT(metrics); i++)
        assert_int_equal(metric_value(metrics[i]) - before[i], wanted[i]);
    assert_in_range(metric_value(&bus_metrics.settle_calls) - calls, 1, 10);
    assert_int_equal(metric_value(&bus_metrics.handlers_running), 0);
}

TEST(worker_gives_up_what_cannot_be_stored)
{
    scoped(bus_free) Bus *bus  = bus_new(8);
    Held                  held = HELD(.open = true, .result = "1e500000");
    Running               running;

    bus_send(bus, "mail", 1);
    running_start(&running, bus, (WorkerOptions){.handler = &held.base, .drain = true});
    assert_int_equal(running_end(&running).failed, 1);
    assert_int_equal(bus_count(bus, "tsq where error like 'outcome could not be stored:%'"), 1);
}

/* What fails for another reason than the outcome is waited out, and the outcome stays what it was. */
TEST(worker_does_not_blame_a_command_for_what_is_wrong_with_the_schema)
{
    scoped(bus_free) Bus *bus  = bus_new(8);
    Held                  held = HELD(.result = "[7]");
    Running               running;
    int64_t               failed = metric_value(&pg_metrics.tx_failed);

    bus_send(bus, "mail", 1);
    running_start(&running, bus, (WorkerOptions){.handler = &held.base});
    await(held.begun == 1);
    database_exec(bus->db, "alter function pawl.settle_items rename to elsewhere");
    held.open = true;
    await(metric_value(&pg_metrics.tx_failed) >= failed + 2);
    database_exec(bus->db, "alter function pawl.elsewhere rename to settle_items");
    await(bus_count(bus, "outcome where status = 'COMPLETED' and result = '[7]'") == 1);
    running_stop(&running, 5000);
}

#ifdef PAWL_FAULTS
TEST(worker_that_stops_in_an_outage_does_not_wait_for_its_end)
{
    scoped(bus_free) Bus *bus  = bus_new(8);
    Held                  held = HELD(.result = "[7]");
    Running               running;

    bus_send(bus, "mail", 1);
    running_start(&running, bus, (WorkerOptions){.handler = &held.base});
    await(held.begun == 1);
    fault_arm("pg.query", LONG_MAX);
    worker_stop(running.worker, deadline_in_ms(300));
    held.open = true;
    await(running.ended);
    fault_arm_nth(0);
    assert_int_equal(running_end(&running).lost, 1);
    assert_int_equal(bus_count(bus, "lease"), 1); /* runs out, and another worker begins anew */
}
#endif

/* Settles take until the test's own session unlocks 78. */
#define SETTLE_WAITS                                                             \
    "create function public.settle_waits() returns trigger language plpgsql as " \
    "'begin perform pg_advisory_xact_lock_shared(78); return new; end';"         \
    "create trigger settle_waits before insert on pawl.outcome "                 \
    "for each row execute function public.settle_waits();"                       \
    "select pg_advisory_lock(78)"

TEST(worker_runs_handlers_while_outcomes_are_settled)
{
    enum { SENT = OUTCOMES_MAX + 500, HANDLERS = 2 };
    scoped(bus_free) Bus *bus  = bus_new(8);
    Held                  held = HELD(.open = true);
    Running               running;

    database_exec(bus->db, SETTLE_WAITS);
    bus_send(bus, "mail", SENT);
    running_start(&running, bus, (WorkerOptions){.handler = &held.base, .concurrency = HANDLERS});
    await(held.begun >= OUTCOMES_MAX);
    assert_int_equal(bus_count(bus, "outcome"), 0);
    await(held.running == 0);
    /* What a crash would repeat now. */
    assert_in_range(held.begun, OUTCOMES_MAX, OUTCOMES_MAX + HANDLERS - 1);
    database_exec(bus->db, "select pg_advisory_unlock(78)");
    await(bus_count(bus, "outcome") == SENT);
    assert_int_equal(running_stop(&running, 1000).completed, SENT);
    assert_int_equal(held.begun, SENT);
}

/* A handler that notes what it met, when it is given a permit. */
typedef struct {
    Handler    base;
    atomic_int permits, begun;
    int        priorities[64];
} Permitted;

static void permitted_run(Handler *base, Job *job, SettleItem *ret_settle)
{
    Permitted *permitted = (Permitted *)base;

    permitted->priorities[atomic_fetch_add(&permitted->begun, 1)] = job->command->priority;
    while (atomic_fetch_sub(&permitted->permits, 1) <= 0) {
        atomic_fetch_add(&permitted->permits, 1);
        clock_sleep_ms(1);
    }
    ret_settle->outcome = OUTCOME_COMPLETE;
}

static int worker_handler_us(Worker *worker, int64_t us)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&worker->mutex);

    worker->handler_us = us;
    return worker->waiting;
}

TEST(worker_begins_what_was_claimed_ahead_by_priority)
{
    scoped(bus_free) Bus *bus       = bus_new(8);
    Permitted             permitted = {.base = {.run = permitted_run}};
    Running               running;

    running_start(&running, bus, (WorkerOptions){.handler = &permitted.base, .concurrency = 1});
    (void)worker_handler_us(running.worker, 100);
    bus_send(bus, "mail", 10);
    worker_wake(running.worker);
    await(worker_handler_us(running.worker, 100) == 9);
    database_exec(bus->db, "select pawl.send('mail', 'hello', p_priority => 9)");
    worker_wake(running.worker);
    await(worker_handler_us(running.worker, 100) == 10);
    atomic_store(&permitted.permits, 11);
    await(bus_count(bus, "outcome") == 11);
    assert_int_equal(permitted.priorities[0], 4);
    assert_int_equal(permitted.priorities[1], 9);
    assert_int_equal(running_stop(&running, 1000).completed, 11);
}

/* An application holds the leases of as many commands as there are handlers: the others go on. */
TEST(worker_goes_on_beside_leases_that_are_locked)
{
    enum { HANDLERS = 2 };
    scoped(bus_free) Bus *bus       = bus_new(8);
    Permitted             permitted = {.base = {.run = permitted_run}};
    Running               running;

    bus_send(bus, "mail", HANDLERS);
    running_start(&running, bus, (WorkerOptions){.handler = &permitted.base, .concurrency = HANDLERS});
    await(permitted.begun == HANDLERS);
    database_exec(bus->db, "begin; select from pawl.lease for update");
    atomic_store(&permitted.permits, 20);
    bus_send(bus, "mail", 10);
    worker_wake(running.worker);
    await(bus_count(bus, "outcome") == 10);
    database_exec(bus->db, "commit");
    await(bus_count(bus, "outcome") == 10 + HANDLERS);
    assert_int_equal(running_stop(&running, 1000).completed, 10 + HANDLERS);
}

#ifdef PAWL_FAULTS
static bool worker_cannot_settle(Worker *worker)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&worker->mutex);

    return worker->is_unsettled;
}

TEST(worker_begins_nothing_more_while_outcomes_cannot_be_settled)
{
    scoped(bus_free) Bus *bus       = bus_new(8);
    Permitted             permitted = {.base = {.run = permitted_run}};
    Running               running;
    int64_t               failed;

    running_start(&running, bus, (WorkerOptions){.handler = &permitted.base, .concurrency = 2});
    (void)worker_handler_us(running.worker, 100);
    bus_send(bus, "mail", 20);
    worker_wake(running.worker);
    await(worker_handler_us(running.worker, 100) == 18);
    fault_arm("pg.query", LONG_MAX);
    atomic_store(&permitted.permits, 2);
    await(permitted.begun == 4); /* that outcomes cannot be settled is known when the first settle has failed */
    await(worker_cannot_settle(running.worker));
    atomic_store(&permitted.permits, 18);
    failed = metric_value(&pg_metrics.tx_failed);
    await(metric_value(&pg_metrics.tx_failed) - failed >= 3);
    assert_int_equal(permitted.begun, 4);
    fault_arm_nth(0);
    await(bus_count(bus, "outcome") == 20);
    assert_int_equal(running_stop(&running, 1000).completed, 20);
    assert_int_equal(bus_count(bus, "outcome where attempts > 1"), 0);
}
#endif

/* A heartbeat takes until the test's own session unlocks 77; else it waits for no lock for so long. */
#define EXTEND_WAITS                                                                      \
    "create function public.extend_waits() returns trigger language plpgsql as "          \
    "$$ begin perform set_config('lock_timeout', '0', true), pg_advisory_xact_lock(77); " \
    "return new; end $$;"                                                                 \
    "create trigger extend_waits before update of until on pawl.lease "                   \
    "for each row execute function public.extend_waits();"                                \
    "select pg_advisory_lock(77)"
#define EXTENDING                                                                                                  \
    "select count(*) from pg_locks l join pg_database d on d.oid = l.database and d.datname = current_database() " \
    "where l.locktype = 'advisory' and l.objid = 77 and not l.granted"

static void locked_run(Handler *base, Job *job, SettleItem *ret_settle)
{
    (void)base;
    (void)ret_settle;
    job->is_locked = true;
}

static bool worker_is_closing(Worker *worker)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&worker->mutex);

    return worker->closing;
}

/* The lease can be extended again when no handler is left that would run the command. */
TEST(worker_that_ends_drops_what_is_unlocked_meanwhile)
{
    scoped(bus_free) Bus *bus    = bus_new(8);
    Handler               locked = {.run = locked_run};
    Running               running;

    database_exec(bus->db, EXTEND_WAITS);
    bus_send(bus, "mail", 1);
    running_start(&running, bus, (WorkerOptions){.handler = &locked, .concurrency = 1, .lease_ms = 180000});
    await(database_get_i64(bus->db, EXTENDING) == 1);
    worker_stop(running.worker, deadline_in_ms(1000));
    await(worker_is_closing(running.worker));
    database_exec(bus->db, "select pg_advisory_unlock(77)");
    await(running.ended);
    assert_int_equal(running_end(&running).lost, 1);
    assert_int_equal(bus_count(bus, "lease"), 1); /* runs out, and another worker begins anew */
}

TEST(worker_that_must_stop_does_not_wait_for_a_notification)
{
    scoped(bus_free) Bus *bus  = bus_new(8);
    Held                  held = HELD(.result = "[7]");
    Running               running;

    bus_send(bus, "mail", 1);
    running_start(&running, bus, (WorkerOptions){.handler = &held.base});
    await(held.begun == 1);
    database_exec(bus->db, "alter schema pawl rename to elsewhere");
    held.open = true;
    await(running.ended);
    thread_join(running.thread);
    assert_int_equal(running.code, ERR_INTERNAL);
    worker_free(running.worker);
}

TEST(worker_takes_over_from_a_crashed_one_within_a_second_of_its_lease)
{
    scoped(bus_free) Bus         *bus     = bus_new(8);
    scoped(claimer_free) Claimer *dead    = claimer_new(bus->pool, "mail", NULL, "dead");
    Held                          held    = HELD(.open = true);
    ClaimedCommand               *claimed = NULL;
    Running                       running;

    bus_send(bus, "mail", 1);
    running_start(&running, bus,
                  (WorkerOptions){
                      .handler = &held.base, .types = (const char *[]){"none", NULL}
    });
    assert_int_equal(bus_claim(bus, dead, 1, 1500, &claimed), 1);
    assert_int_equal(running_stop(&running, 1000).claimed, 0);
    running_start(&running, bus, (WorkerOptions){.handler = &held.base});
    await(bus_count(bus, "outcome") == 1);
    assert_in_range(database_get_i64(bus->db, "select max(pawl.micros(at)) - min(pawl.micros(at)) from pawl.audit "
                                              "where event = 'RECEIVED'"),
                    1500000, 2500000 + test_stalled_ms() * 1000);
    assert_int_equal(running_stop(&running, 1000).completed, 1);
}

TEST(worker_is_woken_by_a_notification)
{
    scoped(bus_free) Bus *bus    = bus_new(8);
    Held                  held   = HELD(.open = true);
    Waker                *waker  = waker_new(bus->pool);
    Listen               *listen = listen_new(database_url(bus->db), bus->pool);
    Running               running;

    running_start(&running, bus, (WorkerOptions){.handler = &held.base});
    worker_listen(running.worker, listen);
    await(listen_is_up(listen));
    /* Let it fall asleep: the pause between two polls is a second or more by then. */
    int64_t asked = -1;
    await(({
        int64_t now   = metric_value(&pg_metrics.tx_ok);
        bool    still = now == asked;
        asked         = now;
        clock_sleep_ms(700);
        still;
    }));
    int64_t sent     = metric_value(&bus_metrics.notifications_sent),
            received = metric_value(&bus_metrics.notifications_received);
    bus_send(bus, "mail", 1);
    waker_notify(waker, "mail");
    waker_notify(waker, "other");
    await(bus_count(bus, "outcome") == 1);
    await(metric_value(&bus_metrics.notifications_sent) - sent == 2);
    await(metric_value(&bus_metrics.notifications_received) - received >= 1); /* it may be on its way yet */
    assert_int_equal(metric_value(&bus_metrics.notifications_received) - received, 1);
    assert_in_range(database_get_i64(bus->db, "select max(pawl.micros(at)) - min(pawl.micros(at)) from pawl.audit "
                                              "where event in ('SENT', 'RECEIVED')"),
                    0, 500000 + test_stalled_ms() * 1000);
    listen_free(listen);
    running_stop(&running, 1000);
    waker_free(waker);
}

TEST(worker_is_woken_from_sql)
{
    scoped(bus_free) Bus *bus    = bus_new(8);
    Held                  held   = HELD(.open = true);
    Listen               *listen = listen_new(database_url(bus->db), bus->pool);
    int64_t               before = metric_value(&bus_metrics.notifications_received);
    Running               running;

    running_start(&running, bus, (WorkerOptions){.handler = &held.base});
    worker_listen(running.worker, listen);
    await(listen_is_up(listen));
    database_exec(bus->db, "select pawl.wake('other')");
    database_exec(bus->db, "select pawl.wake('mail')");
    await(metric_value(&bus_metrics.notifications_received) == before + 1);
    listen_free(listen);
    running_stop(&running, 1000);
}

/* In how many claims does a worker get a command that is queued and a delayed one that is due, but was not requeued yet? */
static int64_t claims_of_ready_and_due(bool is_notified)
{
    scoped(bus_free) Bus *bus   = bus_new(8);
    Held                  held  = HELD(.open = true);
    SendItem              due   = bus_item("mail", "t", NULL);
    SendItem             *list  = &due;
    Error                 error = {0};

    bus_send(bus, "mail", 1);
    due.delay_ms = 1;
    assert_ok(send_many(bus->pool, soon(), bus->arena, &list, 1, &error));
    await(bus_count(bus, "delayed where due <= pawl.now()") == 1);
    scoped(worker_free) Worker *worker = worker_new(&(WorkerOptions){
        .pool = bus->pool, .domain = "mail", .name = "test", .handler = &held.base, .concurrency = 4, .drain = true});
    if (is_notified)
        worker_wake(worker);
    assert_ok(worker_run(worker, &error));
    assert_int_equal(bus_count(bus, "outcome where status = 'COMPLETED'"), 2);
    return database_get_i64(bus->db, "select count(distinct token) from pawl.outcome");
}

TEST(worker_that_is_notified_claims_before_it_requeues_what_is_due)
{
    assert_int_equal(claims_of_ready_and_due(/* is_notified= */ true), 2);
    assert_int_equal(claims_of_ready_and_due(/* is_notified= */ false), 1);
}

TEST(worker_without_work_asks_less_than_once_a_second)
{
    scoped(bus_free) Bus *bus  = bus_new(8);
    Held                  held = HELD();
    Running               running;

    running_start(&running, bus, (WorkerOptions){.handler = &held.base});
    clock_sleep_ms(4000); /* the pauses have grown to their full length */
    int64_t before = metric_value(&pg_metrics.tx_ok);
    clock_sleep_ms(8000);
    assert_true(metric_value(&pg_metrics.tx_ok) - before <= 8 + test_stalled_ms() / 1000);
    await(metric_value(&pg_metrics.tx_ok) - before >= 2);
    running_stop(&running, 1000);
}

TEST(workers_of_one_pool_share_one_requeue_task)
{
    scoped(bus_free) Bus *bus   = bus_new(8);
    Held                  held  = HELD(.open = true);
    Mono                  start = clock_mono();
    int64_t               calls = metric_value(&bus_metrics.requeue_calls);
    Running               running[4];
    const char           *domains[] = {"mail", "shop", "bank", "farm"};

    for (int i = 0; i < 4; i++)
        bus_send(bus, domains[i], 1);
    for (int i = 0; i < 4; i++)
        running_start_in(&running[i], bus, domains[i], (WorkerOptions){.handler = &held.base});
    await(bus_count(bus, "outcome") == 4);
    /* Each worker has asked by now; all of them together may cause a call per second. */
    assert_in_range(metric_value(&bus_metrics.requeue_calls) - calls, 1,
                    1 + mono_ms_between(start, clock_mono()) / 1000);
    /* What one worker requeues is run by the worker of its domain. */
    for (int i = 0; i < 4; i++) {
        SendItem  later = bus_item(domains[i], "t", NULL);
        SendItem *list  = &later;
        Error     error = {0};

        later.delay_ms = 300;
        assert_ok(send_many(bus->pool, soon(), bus->arena, &list, 1, &error));
    }
    await(bus_count(bus, "outcome") == 8);
    for (int i = 0; i < 4; i++)
        (void)running_stop(&running[i], 1000);
}

TEST(worker_says_what_is_wrong_with_its_domain)
{
    scoped(bus_free) Bus *bus     = bus_new(8);
    WorkerOptions         options = {.pool = bus->pool, .domain = "no good", .name = "t", .handler = &handler_noop};
    scoped(worker_free) Worker *worker = worker_new(&options);
    Error                       error  = {0};

    assert_code(ERR_INVALID, worker_run(worker, &error));
    assert_contains(error.text, "domain must be");
}

/* ---- progress ---- */

/* Reports all the time until it is released, then ends with its outcome. */
typedef struct {
    Held       held;
    bool       is_silent;
    atomic_int reports;
} Reporter;

static void reporter_run(Handler *base, Job *task, SettleItem *ret_settle)
{
    Reporter *reporter = (Reporter *)base;
    Error     error    = {0};

    atomic_fetch_add(&reporter->held.begun, 1);
    do {
        int number = atomic_fetch_add(&reporter->reports, 1);

        if (!reporter->is_silent &&
            job_progress(task, &(JobProgress){.percent = number % 101, .text = "under way"}, &error) != OK)
            abort();
        clock_sleep_ms(100);
    } while (!atomic_load(&reporter->held.open) && !job_is_stopped(task));
    if (!reporter->is_silent && job_progress(task, &(JobProgress){.percent = 100}, &error) != OK)
        abort();
    ret_settle->outcome = reporter->held.outcome;
}

TEST(worker_writes_the_progress_of_a_thousand_commands_in_one_statement_a_second)
{
    scoped(bus_free) Bus *bus      = bus_new(8);
    Reporter              reporter = {.held = {.base = {.run = reporter_run}}};
    Running               running;
    int64_t               calls = metric_value(&bus_metrics.progress_calls);
    Mono                  began = clock_mono();
    int64_t               most;

    bus_send(bus, "mail", WORKER_CONCURRENCY_MAX);
    running_start(&running, bus,
                  (WorkerOptions){.handler = &reporter.held.base, .concurrency = WORKER_CONCURRENCY_MAX});
    await(bus_count(bus, "progress where percent is not null and text = 'under way' and attempt = 1") ==
          WORKER_CONCURRENCY_MAX);
    await(metric_value(&bus_metrics.progress_calls) >= calls + 3);
    atomic_store(&reporter.held.open, true);
    await(bus_count(bus, "outcome") == WORKER_CONCURRENCY_MAX);
    running_stop(&running, 10000);
    most  = mono_ms_between(began, clock_mono()) / 1000 + 1;
    calls = metric_value(&bus_metrics.progress_calls) - calls;
    if (calls > most)
        fail_msg("%d statements for %d reports in %d s", (int)calls, reporter.reports, (int)most);
}

TEST(worker_writes_nothing_for_handlers_that_report_nothing)
{
    scoped(bus_free) Bus *bus      = bus_new(8);
    Reporter              reporter = {
                     .held = {.base = {.run = reporter_run}, .outcome = OUTCOME_RETRY},
                       .is_silent = true
    };
    Running running;
    int64_t calls = metric_value(&bus_metrics.progress_calls);

    bus_send(bus, "mail", 20);
    running_start(&running, bus, (WorkerOptions){.handler = &reporter.held.base, .concurrency = 20, .lease_ms = 300});
    await(reporter.reports > 20 * 15); /* longer than reports wait, and than leases last */
    atomic_store(&reporter.held.open, true);
    await(bus_count(bus, "delayed") == 20);
    running_stop(&running, 10000);
    assert_int_equal(metric_value(&bus_metrics.progress_calls), calls);
    assert_int_equal(bus_count(bus, "progress"), 0);
}

TEST(worker_writes_the_last_progress_of_an_attempt_that_fails_before_it_settles)
{
    scoped(bus_free) Bus *bus      = bus_new(8);
    Reporter              reporter = {
                     .held = {.base = {.run = reporter_run}, .open = true, .outcome = OUTCOME_FAIL}
    };
    Running running;

    bus_send(bus, "mail", 50);
    running_start(&running, bus, (WorkerOptions){.handler = &reporter.held.base, .concurrency = 50});
    await(bus_count(bus, "tsq") == 50);
    running_stop(&running, 10000);
    assert_int_equal(bus_count(bus, "progress where percent = 100 and text is null"), 50);
}

TEST(worker_writes_progress_again_that_another_transaction_held_up)
{
    scoped(bus_free) Bus *bus      = bus_new(8);
    Reporter              reporter = {.held = {.base = {.run = reporter_run}}};
    Running               running;

    bus_send(bus, "mail", 2);
    running_start(&running, bus, (WorkerOptions){.handler = &reporter.held.base, .concurrency = 2});
    await(bus_count(bus, "progress") == 2);
    database_exec(bus->db, "begin; select * from pawl.progress order by id limit 1 for update");
    atomic_store(&reporter.reports, 0);
    database_exec(bus->db, "create temporary table met as select id, at from pawl.progress");
    await(database_get_i64(bus->db, "select count(*) from pawl.progress g join met using (id) where g.at > met.at") ==
          1);
    database_exec(bus->db, "commit");
    await(database_get_i64(bus->db, "select count(*) from pawl.progress g join met using (id) where g.at > met.at") ==
          2);
    atomic_store(&reporter.held.open, true);
    await(bus_count(bus, "outcome") == 2);
    running_stop(&running, 10000);
}

TEST(job_progress_is_refused_by_the_name_of_its_field)
{
    static char long_text[PROGRESS_CHARACTERS_MAX + 2];
    static const struct {
        JobProgress progress;
        const char *error;
    } rows[] = {
        {{.percent = 101},                  "percent must be from 0 to 100, got 101"     },
        {{.percent = -2},                   "percent must be from 0 to 100, got -2"      },
        {{.percent = PROGRESS_NONE},        "percent or text must be given"              },
        {{.percent = 1, .text = ""},        "text must have 1 to 200 characters, got 0"  },
        {{.percent = 1, .text = long_text}, "text must have 1 to 200 characters, got 201"},
        {{.percent = 1, .text = "\xff"},    "text must be UTF-8"                         },
    };
    Job task = {0};

    memset(long_text, 'x', PROGRESS_CHARACTERS_MAX + 1);
    for (size_t i = 0; i < COUNT(rows); i++) {
        Error error = {0};

        assert_int_equal(job_progress(&task, &rows[i].progress, &error), ERR_INVALID);
        assert_string_equal(error.text, rows[i].error);
    }
}
