/*
 * combiner_test.c - what shares a batch, what ends before it is run, and that a bad item is alone with its error.
 */
#include "pg/combiner.h"
#include "pg/combiner_split.h"

#include <stdatomic.h>

#include "base/fault.h"
#include "base/sync.h"
#include "test/harness/test.h"
#include "test/unit/pg/await.h"

#define THREADS  16
#define NEVER_MS 3600000 /* no run is slow */

typedef struct {
    int   number;
    bool  bad, done, free; /* free: it passes the gate */
    int   runs;
    Error error; /* of combiner_split() */
} Item;

/* A run that waits until it is let go, and notes what it was given. */
typedef struct {
    Mutex     mutex;
    Cond      changed;
    bool      open;
    int       runs, largest, inside, inside_max;
    ErrorCode code; /* for runs with a bad item */
} Gate;

static void gate_init(Gate *gate, bool open)
{
    *gate = (Gate){.open = open, .code = ERR_INVALID};
    mutex_init(&gate->mutex);
    cond_init(&gate->changed);
}

static void gate_open(Gate *gate)
{
    mutex_lock(&gate->mutex);
    gate->open = true;
    cond_broadcast(&gate->changed);
    mutex_unlock(&gate->mutex);
}

static ErrorCode gate_run(void *context, void **items, int count, Deadline deadline, Error *reterr)
{
    Gate *gate = context;
    bool  bad = false, free = true;

    for (int i = 0; i < count; i++)
        free &= ((const Item *)items[i])->free;
    mutex_lock(&gate->mutex);
    gate->runs++;
    gate->inside++;
    gate->largest    = count > gate->largest ? count : gate->largest;
    gate->inside_max = gate->inside > gate->inside_max ? gate->inside : gate->inside_max;
    cond_broadcast(&gate->changed);
    while (!gate->open && !free && cond_wait(&gate->changed, &gate->mutex, deadline))
        ;
    gate->inside--;
    mutex_unlock(&gate->mutex);
    for (int i = 0; i < count; i++) {
        Item *item = items[i];

        item->runs++;
        bad |= item->bad;
    }
    for (int i = 0; i < count && !bad; i++)
        ((Item *)items[i])->done = true;
    return bad ? fail(reterr, gate->code, "one of %d is bad", count) : OK;
}

static int gate_runs(Gate *gate)
{
    mutex_lock(&gate->mutex);
    int runs = gate->runs;
    mutex_unlock(&gate->mutex);
    return runs;
}

typedef struct {
    Combiner *combiner;
    Item      item;
    Deadline  deadline;
    ErrorCode code;
    Error     error;
    pthread_t thread;
} Call;

static void *call_run(void *context)
{
    Call *call = context;

    call->code = combiner_run(call->combiner, &call->item, call->deadline, &call->error);
    return NULL;
}

static void call_start(Call *call, Combiner *combiner, Deadline deadline)
{
    call->combiner = combiner;
    call->deadline = deadline;
    call->thread   = thread_start("caller", call_run, call);
}

TEST(combiner_runs_at_once_when_it_is_quiet)
{
    Gate gate;
    gate_init(&gate, true);
    scoped(combiner_free) Combiner *combiner = combiner_new(&(CombinerOptions){.run = gate_run, .context = &gate});
    Error                           error    = {0};

    for (int i = 0; i < 3; i++) {
        Item item = {0};

        assert_ok(combiner_run(combiner, &item, deadline_in_ms(5000), &error));
        assert_true(item.done);
    }
    assert_int_equal(gate.runs, 3);
    assert_int_equal(gate.largest, 1);
}

TEST(combiner_merges_what_gathers_while_a_run_is_under_way)
{
    Gate gate;
    Call calls[THREADS] = {0};
    gate_init(&gate, false);
    scoped(combiner_free) Combiner *combiner = combiner_new(&(CombinerOptions){
        .run = gate_run, .context = &gate, .slots = 1, .slow_ms = NEVER_MS, .batch_max = 10, .queue_max = 15});
    Item                            extra    = {0};
    Error                           error    = {0};

    call_start(&calls[0], combiner, deadline_never());
    await(gate_runs(&gate) == 1);
    for (int i = 1; i < THREADS; i++)
        call_start(&calls[i], combiner, deadline_never());
    await(combiner_queued(combiner) == THREADS - 1);
    assert_code(ERR_BUSY, combiner_run(combiner, &extra, deadline_never(), &error));
    assert_int_equal(extra.runs, 0);
    gate_open(&gate);
    for (int i = 0; i < THREADS; i++) {
        thread_join(calls[i].thread);
        assert_int_equal(calls[i].code, OK);
        assert_true(calls[i].item.done);
        assert_int_equal(calls[i].item.runs, 1);
    }
    assert_int_equal(gate.runs, 3); /* 1, 10, 5 */
    assert_int_equal(gate.largest, 10);
    assert_int_equal(gate.inside_max, 1);
}

TEST(combiner_does_not_run_what_left_before)
{
    Gate gate;
    Call first = {0};
    Item item  = {0};
    gate_init(&gate, false);
    scoped(combiner_free) Combiner *combiner =
        combiner_new(&(CombinerOptions){.run = gate_run, .context = &gate, .slots = 1, .slow_ms = NEVER_MS});
    Error error = {0};

    call_start(&first, combiner, deadline_never());
    await(gate_runs(&gate) == 1);
    assert_code(ERR_TIMEOUT, combiner_run(combiner, &item, deadline_in_ms(20), &error));
    gate_open(&gate);
    thread_join(first.thread);
    assert_int_equal(first.code, OK);
    assert_int_equal(item.runs, 0);
    assert_int_equal(gate.runs, 1);
}

static void item_done(void *item, const Error *error)
{
    ((Item *)item)->error = *error;
}

TEST(combiner_finds_the_bad_items_by_halves)
{
    Gate  gate;
    Item  items[100] = {0};
    void *list[100];
    gate_init(&gate, true);

    for (int i = 0; i < 100; i++)
        list[i] = &items[i];
    items[7].bad = items[93].bad = true;
    combiner_split(gate_run, &gate, list, 100, deadline_never(), item_done);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(items[i].error.code, items[i].bad ? ERR_INVALID : OK);
        assert_int_equal(items[i].done, !items[i].bad);
    }
    assert_contains(items[7].error.text, "one of 1 is bad");
    assert_true(gate.runs < 32);
}

TEST(combiner_reports_one_error_to_all_items_of_a_failed_server)
{
    Gate  gate;
    Item  items[8] = {0};
    void *list[8];
    gate_init(&gate, true);

    for (int i = 0; i < 8; i++)
        list[i] = &items[i];
    items[3].bad = true;
    gate.code    = ERR_UNAVAILABLE;
    combiner_split(gate_run, &gate, list, 8, deadline_never(), item_done);
    assert_int_equal(gate.runs, 1);
    for (int i = 0; i < 8; i++)
        assert_int_equal(items[i].error.code, ERR_UNAVAILABLE);
}

static size_t item_weight(const void *item)
{
    return (size_t)((const Item *)item)->number;
}

TEST(combiner_carries_no_more_than_it_may)
{
    Gate gate;
    Call calls[4] = {0};
    gate_init(&gate, false);
    scoped(combiner_free) Combiner *combiner = combiner_new(&(CombinerOptions){
        .run = gate_run, .context = &gate, .slots = 1, .slow_ms = NEVER_MS, .weigh = item_weight, .weight_max = 10});

    for (int i = 0; i < 4; i++)
        calls[i].item.number = i == 1 ? 50 : 5; /* the heavy one runs alone */
    call_start(&calls[0], combiner, deadline_never());
    await(gate_runs(&gate) == 1);
    for (int i = 1; i < 4; i++)
        call_start(&calls[i], combiner, deadline_never());
    gate_open(&gate);
    for (int i = 0; i < 4; i++) {
        thread_join(calls[i].thread);
        assert_int_equal(calls[i].code, OK);
    }
    assert_true(gate.runs >= 3);
    assert_true(gate.largest <= 2);
}

/* ---- keys ---- */

/* Two keys, the digits of the item's number; 0: not known. */
static int item_keys(const void *item, uint64_t *ret_keys)
{
    int number = ((const Item *)item)->number;

    ret_keys[0] = (uint64_t)number / 10;
    ret_keys[1] = (uint64_t)number % 10;
    return number ? 2 : -1;
}

static void calls_join(Call *calls, int count)
{
    for (int i = 0; i < count; i++) {
        thread_join(calls[i].thread);
        assert_int_equal(calls[i].code, OK);
        assert_int_equal(calls[i].item.runs, 1);
    }
}

TEST(combiner_runs_batches_side_by_side_that_have_no_key_in_common)
{
    enum { HELD, SHARES_HELD, SHARES_SHARER, APART, COUNT_OF };
    static const int numbers[COUNT_OF] = {12, 23, 34, 56};
    Gate             gate;
    Call             calls[COUNT_OF] = {0};
    gate_init(&gate, false);
    scoped(combiner_free) Combiner *combiner = combiner_new(
        &(CombinerOptions){.run = gate_run, .context = &gate, .slots = 2, .slow_ms = NEVER_MS, .keys = item_keys});

    for (int i = 0; i < COUNT_OF; i++) {
        calls[i].item.number = numbers[i];
        calls[i].item.free   = i != HELD;
        call_start(&calls[i], combiner, deadline_never());
        if (i == HELD)
            await(gate_runs(&gate) == 1);
        else if (i != APART)
            await(combiner_queued(combiner) == i);
    }
    thread_join(calls[APART].thread); /* while the first is held */
    assert_int_equal(calls[APART].code, OK);
    assert_int_equal(calls[APART].item.runs, 1);
    assert_int_equal(combiner_queued(combiner), 2);
    assert_int_equal(gate_runs(&gate), 2);
    gate_open(&gate);
    calls_join(calls, APART);
}

TEST(combiner_runs_an_item_of_unknown_keys_beside_no_batch)
{
    Gate gate;
    Call calls[3] = {0};
    gate_init(&gate, false);
    scoped(combiner_free) Combiner *combiner = combiner_new(
        &(CombinerOptions){.run = gate_run, .context = &gate, .slots = 2, .slow_ms = NEVER_MS, .keys = item_keys});

    calls[0].item.number = 12;
    calls[1].item.number = 0;
    calls[2].item.number = 56; /* behind it, so that it is not passed for ever */
    for (int i = 0; i < 3; i++) {
        call_start(&calls[i], combiner, deadline_never());
        if (i == 0)
            await(gate_runs(&gate) == 1);
        else
            await(combiner_queued(combiner) == i);
    }
    assert_int_equal(gate_runs(&gate), 1);
    gate_open(&gate);
    calls_join(calls, 3);
}

TEST(combiner_does_not_wait_for_the_keys_of_a_slow_batch)
{
    Gate gate;
    Call held = {0}, same = {0};
    gate_init(&gate, false);
    scoped(combiner_free) Combiner *combiner = combiner_new(
        &(CombinerOptions){.run = gate_run, .context = &gate, .slots = 2, .slow_ms = 20, .keys = item_keys});

    held.item.number = same.item.number = 12;
    same.item.free                      = true;
    call_start(&held, combiner, deadline_never());
    await(gate_runs(&gate) == 1);
    call_start(&same, combiner, deadline_never());
    thread_join(same.thread); /* once the first has become slow */
    assert_int_equal(same.code, OK);
    gate_open(&gate);
    thread_join(held.thread);
    assert_int_equal(held.code, OK);
}

/* ---- without waiting ---- */

typedef struct {
    Item       item; /* first: the combiner hands this back */
    atomic_int done;
    Error      error;
} Submitted;

static void submitted_done(void *item, const Error *error)
{
    Submitted *submitted = item;

    submitted->error = *error;
    atomic_fetch_add(&submitted->done, 1);
}

TEST(combiner_submitted_items_are_done_once_and_share_batches)
{
    Gate      gate;
    Submitted submitted[THREADS] = {0};
    Call      call               = {0};
    gate_init(&gate, false);
    Combiner *combiner =
        combiner_new(&(CombinerOptions){.run = gate_run, .context = &gate, .slots = 1, .slow_ms = NEVER_MS});

    combiner_submit(combiner, &submitted[0], deadline_in_ms(5000), submitted_done);
    await(gate_runs(&gate) == 1);
    call_start(&call, combiner, deadline_never()); /* a blocking caller shares the batch of the others */
    await(combiner_queued(combiner) == 1);
    for (int i = 1; i < THREADS; i++) {
        submitted[i].item.bad = i == 5;
        combiner_submit(combiner, &submitted[i], deadline_in_ms(5000), submitted_done);
    }
    assert_int_equal(combiner_queued(combiner), THREADS);
    gate_open(&gate);
    thread_join(call.thread);
    assert_int_equal(call.code, OK);
    for (int i = 0; i < THREADS; i++)
        await(atomic_load(&submitted[i].done) == 1);
    combiner_free(combiner);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(atomic_load(&submitted[i].done), 1);
        assert_int_equal(submitted[i].error.code, i == 5 ? ERR_INVALID : OK);
        assert_int_equal(submitted[i].item.done, i != 5);
    }
    assert_int_equal(gate.largest, THREADS); /* the blocking one, and all but the first */
}

TEST(combiner_does_not_run_what_was_submitted_after_its_deadline)
{
    Gate      gate;
    Submitted first = {0}, late = {0}, last = {0};
    gate_init(&gate, false);
    Combiner *combiner =
        combiner_new(&(CombinerOptions){.run = gate_run, .context = &gate, .slots = 1, .slow_ms = NEVER_MS});

    combiner_submit(combiner, &first, deadline_in_ms(5000), submitted_done);
    await(gate_runs(&gate) == 1);
    combiner_submit(combiner, &late, deadline_in_ms(0), submitted_done);
    combiner_submit(combiner, &last, deadline_in_ms(5000), submitted_done);
    gate_open(&gate);
    await(atomic_load(&last.done) == 1);
    combiner_free(combiner);
    assert_int_equal(first.error.code, OK);
    assert_int_equal(atomic_load(&late.done), 1);
    assert_int_equal(late.error.code, ERR_TIMEOUT);
    assert_int_equal(late.item.runs, 0);
    assert_int_equal(last.error.code, OK);
}

/* Blocking callers and submitted items behind each other, no slot free for any of them, and deadlines in any order. */
TEST(combiner_watches_the_deadline_of_every_queued_item)
{
    Gate      gate;
    Call      stuck = {0}, patient = {0}, hasty = {0};
    Submitted early = {0}, late = {0};
    gate_init(&gate, false);
    Combiner *combiner =
        combiner_new(&(CombinerOptions){.run = gate_run, .context = &gate, .slots = 1, .slots_max = 1, .slow_ms = 20});

    call_start(&stuck, combiner, deadline_never());
    await(gate_runs(&gate) == 1);
    call_start(&patient, combiner, deadline_never());
    await(combiner_queued(combiner) == 1);
    combiner_submit(combiner, &late, deadline_in_ms(60), submitted_done);
    combiner_submit(combiner, &early, deadline_in_ms(30), submitted_done);
    call_start(&hasty, combiner, deadline_in_ms(40));
    await(atomic_load(&early.done) == 1);
    await(atomic_load(&late.done) == 1);
    thread_join(hasty.thread);
    assert_int_equal(early.error.code, ERR_TIMEOUT);
    assert_int_equal(late.error.code, ERR_TIMEOUT);
    assert_int_equal(hasty.code, ERR_TIMEOUT);
    assert_int_equal(combiner_queued(combiner), 1); /* the patient one */
    gate_open(&gate);
    thread_join(stuck.thread);
    thread_join(patient.thread);
    assert_int_equal(stuck.code, OK);
    assert_int_equal(patient.code, OK);
    assert_int_equal(gate.runs, 2);
    combiner_free(combiner);
}

TEST(combiner_submit_refuses_when_the_queue_is_full)
{
    Gate      gate;
    Submitted submitted[3] = {0};
    gate_init(&gate, false);
    Combiner *combiner = combiner_new(
        &(CombinerOptions){.run = gate_run, .context = &gate, .slots = 1, .slow_ms = NEVER_MS, .queue_max = 1});

    combiner_submit(combiner, &submitted[0], deadline_in_ms(5000), submitted_done);
    await(gate_runs(&gate) == 1);
    for (int i = 1; i < 3; i++)
        combiner_submit(combiner, &submitted[i], deadline_in_ms(5000), submitted_done);
    assert_int_equal(atomic_load(&submitted[2].done), 1);
    assert_int_equal(submitted[2].error.code, ERR_BUSY);
    gate_open(&gate);
    await(atomic_load(&submitted[1].done) == 1);
    combiner_free(combiner);
    assert_int_equal(submitted[2].item.runs, 0);
}

/* A process at its limit of threads goes on with those that it has. */
TEST(combiner_without_a_thread_refuses_and_with_one_goes_on)
{
    Gate      gate;
    Submitted refused = {0}, submitted[3] = {0};
    Item      blocking = {0};
    Error     error    = {0};
    gate_init(&gate, true);
    Combiner *combiner = combiner_new(&(CombinerOptions){.run = gate_run, .context = &gate, .slow_ms = NEVER_MS});

    fault_arm("combiner", 1000);
    combiner_submit(combiner, &refused, deadline_in_ms(60000), submitted_done);
    assert_int_equal(atomic_load(&refused.done), 1);
    assert_int_equal(refused.error.code, ERR_BUSY);
    assert_contains(refused.error.text, "no thread can be started");
    assert_int_equal(combiner_queued(combiner), 0);
    assert_ok(combiner_run(combiner, &blocking, deadline_in_ms(60000), &error)); /* on the caller's own thread */
    fault_arm_nth(0);
    combiner_submit(combiner, &submitted[0], deadline_in_ms(60000), submitted_done);
    fault_arm("combiner", 1000);
    combiner_submit(combiner, &submitted[1], deadline_in_ms(60000), submitted_done);
    combiner_submit(combiner, &submitted[2], deadline_in_ms(60000), submitted_done);
    for (int i = 0; i < 3; i++) {
        await(atomic_load(&submitted[i].done) == 1);
        assert_int_equal(submitted[i].error.code, OK);
    }
    fault_arm_nth(0);
    combiner_free(combiner);
}

/* ---- slow batches ---- */

/* As if three batches waited for a lock. */
TEST(combiner_slow_batches_do_not_hold_up_what_is_queued_behind_them)
{
    Gate      gate;
    Call      stuck[3]  = {0};
    Submitted submitted = {.item.free = true};
    Item      item      = {.free = true};
    Error     error     = {0};
    gate_init(&gate, false);
    Combiner *combiner =
        combiner_new(&(CombinerOptions){.run = gate_run, .context = &gate, .slots = 1, .slots_max = 4, .slow_ms = 20});

    for (int i = 0; i < 3; i++) {
        call_start(&stuck[i], combiner, deadline_never());
        await(gate_runs(&gate) == i + 1); /* the next one starts when the one before it is slow */
    }
    assert_ok(combiner_run(combiner, &item, deadline_in_ms(5000), &error));
    assert_true(item.done);
    combiner_submit(combiner, &submitted, deadline_in_ms(5000), submitted_done);
    await(atomic_load(&submitted.done) == 1);
    assert_true(submitted.item.done);
    assert_int_equal(gate.inside_max, 4);
    gate_open(&gate);
    for (int i = 0; i < 3; i++) {
        thread_join(stuck[i].thread);
        assert_int_equal(stuck[i].code, OK);
    }
    combiner_free(combiner);
}

/* Connections are for others, too. */
TEST(combiner_never_runs_more_batches_than_its_share_of_the_pool)
{
    Gate gate;
    Call calls[6] = {0};
    gate_init(&gate, false);
    Combiner *combiner = combiner_new(&(CombinerOptions){
        .run = gate_run, .context = &gate, .slots_max = combiner_share(8, 4), .slow_ms = 1, .batch_max = 1});

    for (int i = 0; i < 6; i++)
        call_start(&calls[i], combiner, deadline_never());
    await(gate_runs(&gate) == 2);
    await(combiner_queued(combiner) == 4);
    gate_open(&gate);
    for (int i = 0; i < 6; i++) {
        thread_join(calls[i].thread);
        assert_int_equal(calls[i].code, OK);
    }
    assert_int_equal(gate.inside_max, 2);
    assert_int_equal(combiner_share(1, 4), 1);
    assert_int_equal(combiner_share(1000, 4), COMBINER_SLOTS_MAX);
    combiner_free(combiner);
}
