/*
 * threads.c - see threads.h.
 */
#include "bench/threads.h"

#include "base/sync.h"

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
