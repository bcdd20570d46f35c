/*
 * measure.c - see measure.h.
 */
#include "bench/measure.h"

#include "base/sync.h"

ErrorCode alternate_run(Bench *bench, const Alternation *alternation, Error *reterr)
{
    Report *report = &bench->report;

    for (int64_t round = 0; round < bench->options.rounds; round++) {
        double rates[2];

        for (int turn = 0; turn < 2; turn++) {
            int which = (int)(round + turn) % 2;

            TRY(alternation->measure(bench, which, alternation->value, &rates[which], reterr));
        }
        for (int which = 0; which < 2; which++)
            report_run(report, alternation->section, alternation->names[which], UNIT_RATE, rates[which]);
        report_run(report, alternation->section, "the second to the first", UNIT_PERCENT, 100 * rates[1] / rates[0]);
    }
    return OK;
}

/* ---- threads ---- */

typedef struct {
    Bench      *bench;
    ThreadWork *work;
    void       *context;
    int         number;
    int64_t     count;
    ErrorCode   code;
    Error       error;
} Member;

static void *member_run(void *context)
{
    Member *member = context;

    member->code = member->work(member->bench, member->context, member->number, member->count, &member->error);
    return NULL;
}

ErrorCode threads_run(Bench *bench, ThreadWork *work, void *context, int64_t count, int64_t *ret_us, Error *reterr)
{
    int        size    = (int)bench->options.clients;
    Member    *members = arena_array(bench->arena, Member, size);
    pthread_t *threads = arena_array(bench->arena, pthread_t, size);
    Mono       start   = clock_mono();
    ErrorCode  code    = OK;

    for (int i = 0; i < size; i++) {
        members[i]       = (Member){.bench = bench, .work = work, .context = context, .number = i};
        members[i].count = count / size + (i < count % size);
        threads[i]       = thread_start("client", member_run, &members[i]);
    }
    for (int i = 0; i < size; i++) {
        thread_join(threads[i]);
        if (members[i].code != OK) {
            code    = members[i].code;
            *reterr = members[i].error;
        }
    }
    *ret_us = mono_us_between(start, clock_mono());
    return code;
}
