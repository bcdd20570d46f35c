/*
 * bus_race_test.c - many threads on the same commands: one command, one claim, one end each.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/sync.h"
#include "test/unit/bus/fixture.h"

#define THREADS  64
#define COMMANDS 1000

typedef struct Racer Racer;
typedef void         RacerBody(Racer *racer);
struct Racer {
    RacerBody *body;
    Bus       *bus;
    void      *shared;
    Arena     *arena; /* its own: an arena belongs to one thread */
    pthread_t  thread;
    ErrorCode  code;
    Error      error;
    SendItem   sent;
    int64_t    ids[COMMANDS];
    int        count;
};

static void *racer_run(void *context)
{
    Racer *racer = context;

    racer->body(racer);
    return NULL;
}

static Racer *race(Bus *bus, int count, RacerBody *body, void *shared)
{
    Racer *racers = calloc((size_t)count, sizeof *racers);

    assert_non_null(racers);
    for (int i = 0; i < count; i++) {
        racers[i].body   = body;
        racers[i].bus    = bus;
        racers[i].shared = shared;
        racers[i].arena  = arena_new((size_t)64 << 20);
        racers[i].thread = thread_start("racer", racer_run, &racers[i]);
    }
    for (int i = 0; i < count; i++)
        thread_join(racers[i].thread);
    for (int i = 0; i < count; i++)
        if (racers[i].code != OK)
            fail_msg("racer %d: %s", i, racers[i].error.text);
    return racers;
}

static void race_free(Racer *racers, int count)
{
    for (int i = 0; i < count; i++)
        arena_free(racers[i].arena);
    free(racers);
}

/* ---- senders ---- */

static void send_through_combiner(Racer *racer)
{
    racer->sent            = bus_item("mail", "t", "{\"n\": 1}");
    racer->sent.command_id = "0190a000-0000-7000-8000-00000000000a";
    racer->code            = sender_send(racer->shared, soon(), &racer->sent, &racer->error);
}

static void send_alone(Racer *racer)
{
    SendItem *list = &racer->sent;

    racer->sent            = bus_item("mail", "t", "{\"n\": 1}");
    racer->sent.command_id = "0190a000-0000-7000-8000-00000000000a";
    racer->code            = send_many(racer->bus->pool, soon(), racer->arena, &list, 1, &racer->error);
}

static void assert_one_command(Bus *bus, RacerBody *body, void *shared)
{
    Racer *racers = race(bus, THREADS, body, shared);
    int    made   = 0;

    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(racers[i].sent.code, OK);
        assert_string_equal(racers[i].sent.id, racers[0].sent.id);
        assert_string_equal(racers[i].sent.status, "PENDING");
        made += racers[i].sent.is_new;
    }
    assert_int_equal(made, 1);
    assert_int_equal(bus_count(bus, "command"), 1);
    assert_int_equal(bus_count(bus, "ready"), 1);
    assert_int_equal(bus_count(bus, "audit"), 1);
    race_free(racers, THREADS);
}

TEST(command_64_senders_of_one_id_make_one_command)
{
    scoped(bus_free) Bus       *bus    = bus_new(16);
    scoped(sender_free) Sender *sender = sender_new(bus->pool);

    assert_one_command(bus, send_through_combiner, sender);
}

TEST(command_64_senders_without_a_combiner_make_one_command)
{
    scoped(bus_free) Bus *bus = bus_new(16);

    assert_one_command(bus, send_alone, NULL);
}

/* ---- claimers ---- */

static void claim_all(Racer *racer)
{
    scoped(claimer_free) Claimer *claimer = claimer_new(racer->bus->pool, "mail", NULL, "racer");
    int                           none    = 0;

    /* Twice nothing: rows locked by others for a moment are skipped. */
    while (racer->code == OK && none < 2) {
        ClaimedCommand *list  = NULL;
        int             count = 0;

        racer->code = claimer_claim(claimer, soon(), racer->arena, &(ClaimTerms){.limit = 10, .lease_ms = 30000}, &list,
                                    &count, &racer->error);
        for (int i = 0; i < count && racer->code == OK; i++)
            racer->ids[racer->count++] = list[i].id;
        none = count == 0 ? none + 1 : 0;
    }
}

TEST(command_two_workers_one_command)
{
    scoped(bus_free) Bus *bus = bus_new(16);

    for (int round = 1; round <= 20; round++) {
        bus_send(bus, "mail", 1);
        Racer *racers = race(bus, 2, claim_all, NULL);
        assert_int_equal(racers[0].count + racers[1].count, 1);
        assert_int_equal(bus_count(bus, "audit where event = 'RECEIVED'"), round);
        race_free(racers, 2);
    }
}

TEST(command_64_claimers_on_1000_commands_claim_each_once)
{
    scoped(bus_free) Bus *bus = bus_new(16);
    int                   sum = 0;

    bus_send(bus, "mail", COMMANDS);
    Racer *racers = race(bus, THREADS, claim_all, NULL);
    for (int i = 0; i < THREADS; i++)
        sum += racers[i].count;
    assert_int_equal(sum, COMMANDS);
    assert_int_equal(bus_count(bus, "lease"), COMMANDS);
    assert_int_equal(bus_count(bus, "ready"), 0);
    assert_int_equal(database_get_i64(bus->db, "select count(distinct id) from pawl.audit where event = 'RECEIVED'"),
                     COMMANDS);
    assert_int_equal(bus_count(bus, "audit where event = 'RECEIVED'"), COMMANDS);
    race_free(racers, THREADS);
}

/* ---- settlers ---- */

typedef struct {
    Pool           *pool;
    ClaimedCommand *claimed;
    int             count;
} Contest;

static const Outcome contest_outcomes[] = {OUTCOME_COMPLETE, OUTCOME_REJECT, OUTCOME_FAIL, OUTCOME_RETRY};
static atomic_int    contest_next;

/* All settle all commands, each in its own way. */
static void settle_all(Racer *racer)
{
    const Contest *contest = racer->shared;
    int            number  = atomic_fetch_add(&contest_next, 1);

    for (int i = 0; i < contest->count && racer->code == OK; i++) {
        const ClaimedCommand *command = &contest->claimed[(i + number * 7) % contest->count];
        SettleItem            item    = {.id       = command->id,
                                         .token    = command->token,
                                         .outcome  = contest_outcomes[number % (int)COUNT(contest_outcomes)],
                                         .delay_ms = SETTLE_DELAY_DEFAULT};

        settle_each(contest->pool, soon(), NULL, &(SettleItem *){&item}, 1);
        racer->code                                   = item.code;
        racer->error                                  = item.error_text;
        racer->ids[(i + number * 7) % contest->count] = item.settled ? 1 + item.outcome : 0;
    }
}

TEST(command_concurrent_settles_end_it_once)
{
    enum { RACERS = 16, CLAIMED = 50 };
    scoped(bus_free) Bus         *bus     = bus_new(16);
    scoped(claimer_free) Claimer *claimer = claimer_new(bus->pool, "mail", NULL, "w1");
    Contest                       contest = {.pool = bus->pool};

    bus_send(bus, "mail", CLAIMED);
    contest.count = bus_claim(bus, claimer, CLAIMED, 60000, &contest.claimed);
    assert_int_equal(contest.count, CLAIMED);
    Racer *racers = race(bus, RACERS, settle_all, &contest);
    /* All racers that got "settled" settled it in the same way: they hold one token, so that is one settle, repeated. */
    for (int command = 0; command < CLAIMED; command++) {
        int64_t outcome = 0;

        for (int i = 0; i < RACERS; i++)
            if (racers[i].ids[command]) {
                assert_true(!outcome || outcome == racers[i].ids[command]);
                outcome = racers[i].ids[command];
            }
        assert_true(outcome != 0);
    }
    assert_int_equal(bus_count(bus, "lease"), 0);
    assert_int_equal(bus_count(bus, "outcome") + bus_count(bus, "tsq") + bus_count(bus, "delayed"), CLAIMED);
    assert_int_equal(bus_count(bus, "audit where event not in ('SENT', 'RECEIVED')"), CLAIMED);
    race_free(racers, RACERS);
}
