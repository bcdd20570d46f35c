/*
 * lanes.c - see lanes.h.
 */
#include "app/lanes.h"

#include <stdlib.h>
#include <string.h>

#include "base/metric.h"
#include "base/sync.h"
#include "base/text.h"
#include "bus/waker.h"

#define LOOK_AGAIN_MS 1000

typedef struct {
    Arena      *arena; /* NULL: free */
    Lane       *lane;
    const char *name; /* domain and types */
    bool        busy;
    Mono        used_at;
} Place;

struct Lanes {
    Pool *pool;
    int   waiters_max;
    Mutex mutex;  /* guards what follows */
    Cond  change; /* a lane came free, a note came, or it is over */
    Place places[LANES_MAX];
    int   waiters;
    long  notes; /* counts notes, so that none is missed between a look and a wait */
    bool  stop;
};

static void note_came(void *context, const char *channel, const char *payload)
{
    Lanes                      *lanes = context;
    scoped(mutex_unlock) Mutex *held  = mutex_hold(&lanes->mutex);

    (void)channel;
    metric_add(METRIC_NOTES_RECEIVED, payload != NULL); /* without one: notes may have been missed */
    lanes->notes++;                                     /* of any domain: whoever waits looks again, a note is a hint */
    cond_broadcast(&lanes->change);
}

Lanes *lanes_new(Pool *pool, Listen *listen, int waiters_max)
{
    Lanes *lanes = calloc(1, sizeof *lanes);

    if (!lanes)
        abort();
    lanes->pool        = pool;
    lanes->waiters_max = waiters_max;
    mutex_init(&lanes->mutex);
    cond_init(&lanes->change);
    if (listen)
        listen_add(listen, WAKER_CHANNEL, note_came, lanes);
    return lanes;
}

void lanes_stop(Lanes *lanes)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&lanes->mutex);

    lanes->stop = true;
    cond_broadcast(&lanes->change);
}

static void place_empty(Place *place)
{
    if (!place->arena)
        return;
    lane_free(place->lane);
    arena_free(place->arena);
    *place = (Place){0};
}

void lanes_free(Lanes *lanes)
{
    for (int i = 0; i < LANES_MAX; i++)
        place_empty(&lanes->places[i]);
    mutex_done(&lanes->mutex);
    cond_done(&lanes->change);
    free(lanes);
}

/* ---- places ---- */

static const char *claim_name(const LanesClaim *claim, Arena *arena)
{
    Text text;

    text_init(&text, arena, TEXT_MAX_BODY);
    text_append(&text, claim->domain);
    for (int i = 0; i < claim->type_count; i++)
        text_print(&text, "\n%s", claim->types[i]);
    return text_string(&text);
}

/* The place of this name; else a free one; else the idle one that was not used for longest; NULL: all are busy. */
static Place *place_find(Lanes *lanes, const char *name)
{
    Place *best = NULL;

    for (int i = 0; i < LANES_MAX; i++) {
        Place *place = &lanes->places[i];

        if (place->name && strcmp(place->name, name) == 0)
            return place;
        if (place->busy || (best && !best->lane))
            continue;
        if (!best || !place->lane || mono_before(place->used_at, best->used_at))
            best = place;
    }
    return best;
}

static void place_fill(Lanes *lanes, Place *place, const char *name, const LanesClaim *claim, Arena *arena)
{
    const char **types = arena_array(arena, const char *, claim->type_count + 1);

    for (int i = 0; i < claim->type_count; i++)
        types[i] = claim->types[i];
    place_empty(place);
    place->arena = arena_new(TEXT_MAX_BODY);
    place->name  = arena_text(place->arena, name);
    place->lane  = lane_new(lanes->pool, claim->domain, claim->type_count ? types : NULL, claim->worker);
}

static ErrorCode place_take(Lanes *lanes, const LanesClaim *claim, Deadline deadline, Arena *arena, Place **ret_place,
                            Error *reterr)
{
    const char                 *name = claim_name(claim, arena);
    scoped(mutex_unlock) Mutex *held = mutex_hold(&lanes->mutex);
    Place                      *place;

    while (!(place = place_find(lanes, name)) || place->busy)
        if (!cond_wait(&lanes->change, held, deadline))
            return fail(reterr, ERR_BUSY, "too many claims at once");
    if (!place->name || strcmp(place->name, name) != 0)
        place_fill(lanes, place, name, claim, arena);
    place->busy = true;
    *ret_place  = place;
    return OK;
}

static void place_give_back(Lanes *lanes, Place *place)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&lanes->mutex);

    place->busy    = false;
    place->used_at = clock_mono();
    cond_broadcast(&lanes->change);
}

/* ---- the long poll ---- */

static long notes_now(Lanes *lanes)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&lanes->mutex);

    return lanes->notes;
}

/* true: look again. false: do not wait any longer. */
static bool wait_for_note(Lanes *lanes, long seen, Deadline wait)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&lanes->mutex);
    Deadline                    look = deadline_sooner(wait, deadline_in_ms(LOOK_AGAIN_MS));

    if (lanes->stop || lanes->waiters >= lanes->waiters_max || deadline_passed(wait))
        return false;
    lanes->waiters++;
    while (!lanes->stop && lanes->notes == seen && cond_wait(&lanes->change, held, look))
        ;
    lanes->waiters--;
    return !lanes->stop;
}

ErrorCode lanes_claim(Lanes *lanes, const LanesClaim *claim, Deadline deadline, Arena *arena, Claimed **ret_list,
                      int *ret_count, Error *reterr)
{
    Deadline wait = deadline_sooner(claim->wait, deadline);

    for (;;) {
        long      seen = notes_now(lanes);
        Place    *place;
        ErrorCode code;

        TRY(place_take(lanes, claim, deadline, arena, &place, reterr));
        lane_serve(place->lane, claim->worker);
        code = lane_claim(place->lane, deadline, arena, claim->limit, claim->lease_ms, ret_list, ret_count, reterr);
        place_give_back(lanes, place);
        if (code != OK || *ret_count > 0 || !wait_for_note(lanes, seen, wait))
            return code;
    }
}
