/*
 * combiner_test.c - who leads, who follows, who leaves, and that a bad item stands alone.
 */
#include "pg/combiner.h"

#include <stdatomic.h>

#include "base/sync.h"
#include "test/harness/test.h"
#include "test/unit/pg/await.h"

#define THREADS  16
#define NEVER_MS 3600000 /* no run is slow */

typedef struct {
    int  number;
    bool bad, done, free; /* free: it passes the gate */
    int  runs;
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

    call->code = combiner_do(call->combiner, &call->item, call->deadline, &call->error);
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

        assert_ok(combiner_do(combiner, &item, deadline_in_ms(5000), &error));
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
        .run = gate_run, .context = &gate, .lanes_max = 1, .slow_ms = NEVER_MS, .batch_max = 10, .queue_max = 15});
    Item                            extra    = {0};
    Error                           error    = {0};

    call_start(&calls[0], combiner, deadline_never());
    await(gate_runs(&gate) == 1);
    for (int i = 1; i < THREADS; i++)
        call_start(&calls[i], combiner, deadline_never());
    await(combiner_waiting(combiner) == THREADS - 1);
    assert_code(ERR_BUSY, combiner_do(combiner, &extra, deadline_never(), &error));
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
        combiner_new(&(CombinerOptions){.run = gate_run, .context = &gate, .lanes_max = 1, .slow_ms = NEVER_MS});
    Error error = {0};

    call_start(&first, combiner, deadline_never());
    await(gate_runs(&gate) == 1);
    assert_code(ERR_TIMEOUT, combiner_do(combiner, &item, deadline_in_ms(20), &error));
    gate_open(&gate);
    thread_join(first.thread);
    assert_int_equal(first.code, OK);
    assert_int_equal(item.runs, 0);
    assert_int_equal(gate.runs, 1);
}

TEST(combiner_finds_the_bad_items_by_halves)
{
    Gate  gate;
    Item  items[100] = {0};
    void *list[100];
    Error errors[100];
    gate_init(&gate, true);

    for (int i = 0; i < 100; i++)
        list[i] = &items[i];
    items[7].bad = items[93].bad = true;
    combiner_run_each(gate_run, &gate, list, 100, deadline_never(), errors);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(errors[i].code, items[i].bad ? ERR_INVALID : OK);
        assert_int_equal(items[i].done, !items[i].bad);
    }
    assert_contains(errors[7].text, "one of 1 is bad");
    assert_true(gate.runs < 32);
}

TEST(combiner_tells_all_when_nothing_is_wrong_with_the_items)
{
    Gate  gate;
    Item  items[8] = {0};
    void *list[8];
    Error errors[8];
    gate_init(&gate, true);

    for (int i = 0; i < 8; i++)
        list[i] = &items[i];
    items[3].bad = true;
    gate.code    = ERR_UNAVAILABLE;
    combiner_run_each(gate_run, &gate, list, 8, deadline_never(), errors);
    assert_int_equal(gate.runs, 1);
    for (int i = 0; i < 8; i++)
        assert_int_equal(errors[i].code, ERR_UNAVAILABLE);
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
    scoped(combiner_free) Combiner *combiner = combiner_new(&(CombinerOptions){.run        = gate_run,
                                                                               .context    = &gate,
                                                                               .lanes_max  = 1,
                                                                               .slow_ms    = NEVER_MS,
                                                                               .weigh      = item_weight,
                                                                               .weight_max = 10});

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

/* ---- without waiting ---- */

typedef struct {
    Item       item; /* first: the combiner hands this back */
    atomic_int told;
    Error      verdict;
} Begun;

static void begun_told(void *item, const Error *verdict)
{
    Begun *begun = item;

    begun->verdict = *verdict;
    atomic_fetch_add(&begun->told, 1);
}

TEST(combiner_begun_is_told_once_and_shares_runs)
{
    Gate  gate;
    Begun begun[THREADS] = {0};
    Call  call           = {0};
    gate_init(&gate, false);
    Combiner *combiner =
        combiner_new(&(CombinerOptions){.run = gate_run, .context = &gate, .lanes_max = 1, .slow_ms = NEVER_MS});

    combiner_begin(combiner, &begun[0], deadline_in_ms(5000), begun_told);
    await(gate_runs(&gate) == 1);
    call_start(&call, combiner, deadline_never()); /* one that waits, in front of the others: it leads for them */
    await(combiner_waiting(combiner) == 1);
    for (int i = 1; i < THREADS; i++) {
        begun[i].item.bad = i == 5;
        combiner_begin(combiner, &begun[i], deadline_in_ms(5000), begun_told);
    }
    assert_int_equal(combiner_waiting(combiner), THREADS);
    gate_open(&gate);
    thread_join(call.thread);
    assert_int_equal(call.code, OK);
    for (int i = 0; i < THREADS; i++)
        await(atomic_load(&begun[i].told) == 1);
    combiner_free(combiner);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(atomic_load(&begun[i].told), 1);
        assert_int_equal(begun[i].verdict.code, i == 5 ? ERR_INVALID : OK);
        assert_int_equal(begun[i].item.done, i != 5);
    }
    assert_int_equal(gate.largest, THREADS); /* the one that waits, and all but the first */
}

TEST(combiner_begun_is_not_run_after_its_deadline)
{
    Gate  gate;
    Begun first = {0}, late = {0}, last = {0};
    gate_init(&gate, false);
    Combiner *combiner =
        combiner_new(&(CombinerOptions){.run = gate_run, .context = &gate, .lanes_max = 1, .slow_ms = NEVER_MS});

    combiner_begin(combiner, &first, deadline_in_ms(5000), begun_told);
    await(gate_runs(&gate) == 1);
    combiner_begin(combiner, &late, deadline_in_ms(0), begun_told);
    combiner_begin(combiner, &last, deadline_in_ms(5000), begun_told);
    gate_open(&gate);
    await(atomic_load(&last.told) == 1);
    combiner_free(combiner);
    assert_int_equal(first.verdict.code, OK);
    assert_int_equal(atomic_load(&late.told), 1);
    assert_int_equal(late.verdict.code, ERR_TIMEOUT);
    assert_int_equal(late.item.runs, 0);
    assert_int_equal(last.verdict.code, OK);
}

TEST(combiner_begun_is_refused_in_here_when_the_line_is_full)
{
    Gate  gate;
    Begun begun[3] = {0};
    gate_init(&gate, false);
    Combiner *combiner = combiner_new(
        &(CombinerOptions){.run = gate_run, .context = &gate, .lanes_max = 1, .slow_ms = NEVER_MS, .queue_max = 1});

    combiner_begin(combiner, &begun[0], deadline_in_ms(5000), begun_told);
    await(gate_runs(&gate) == 1);
    for (int i = 1; i < 3; i++)
        combiner_begin(combiner, &begun[i], deadline_in_ms(5000), begun_told);
    assert_int_equal(atomic_load(&begun[2].told), 1);
    assert_int_equal(begun[2].verdict.code, ERR_BUSY);
    gate_open(&gate);
    await(atomic_load(&begun[1].told) == 1);
    combiner_free(combiner);
    assert_int_equal(begun[2].item.runs, 0);
}

/* ---- slow runs ---- */

/* As if three runs waited for a lock that somebody holds. */
TEST(combiner_slow_runs_do_not_hold_up_what_comes_after_them)
{
    Gate  gate;
    Call  stuck[3] = {0};
    Begun begun    = {.item.free = true};
    Item  item     = {.free = true};
    Error error    = {0};
    gate_init(&gate, false);
    Combiner *combiner =
        combiner_new(&(CombinerOptions){.run = gate_run, .context = &gate, .lanes_max = 1, .slow_ms = 20});

    for (int i = 0; i < 3; i++) {
        call_start(&stuck[i], combiner, deadline_never());
        await(gate_runs(&gate) == i + 1); /* the next one begins when the one before it is slow */
    }
    assert_ok(combiner_do(combiner, &item, deadline_in_ms(5000), &error));
    assert_true(item.done);
    combiner_begin(combiner, &begun, deadline_in_ms(5000), begun_told);
    await(atomic_load(&begun.told) == 1);
    assert_true(begun.item.done);
    assert_int_equal(gate.inside_max, 4);
    gate_open(&gate);
    for (int i = 0; i < 3; i++) {
        thread_join(stuck[i].thread);
        assert_int_equal(stuck[i].code, OK);
    }
    combiner_free(combiner);
}
