/*
 * wait.c - requests that wait for the end of a command or process: no thread waits for it, and a client that disconnects ends its wait.
 *
 * The request is suspended until its command has ended (bus/outcome_wait.h) and was read. Thousands may end at once: commands are read by the dozen, because
 * each alone takes ten times as long. Everything else is read by the handler of the route, on one of a few threads: processes, what is unknown, and what
 * the client may not read, which gets the same words as without wait_s.
 */
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "base/log.h"
#include "http/suspend.h"

#define READ_MS   10000 /* as for any other request */
#define SHOWS_MAX 32    /* commands that are read together */

typedef struct {
    OutcomeWait wait; /* first: api_waiting_request() gets its address */
    Api        *api;
    Request    *request;
    Response   *response;
    bool        is_shown; /* its command was read with others */
    LockCall    call;
    ErrorCode   code;
    Error       error;
} RequestWait;

const Request *api_waiting_request(const OutcomeWait *wait)
{
    return ((const RequestWait *)wait)->request;
}

bool api_waits(const Request *request)
{
    return request_query(request, "wait_s") && !request_state(request);
}

/* ---- by the handler of the route ---- */

static ErrorCode waiting_read(LockCall *call, Error *reterr)
{
    RequestWait *waiting = call->context;
    Request     *request = waiting->request;
    ErrorCode    code;

    log_set_request(request_id(request));
    code = request_route(request)->handler(waiting->api, request, waiting->response, reterr);
    log_set_request(NULL);
    return code;
}

static void waiting_read_done(void *context)
{
    RequestWait *waiting = context;

    waiting->code  = waiting->call.code;
    waiting->error = waiting->call.error;
    request_resume(waiting->request);
}

static Deadline read_deadline(const RequestWait *waiting)
{
    return deadline_sooner(request_deadline(waiting->request), deadline_in_ms(READ_MS));
}

static void waiting_read_submit(RequestWait *waiting)
{
    waiting->call = (LockCall){.run      = waiting_read,
                               .deadline = read_deadline(waiting),
                               .on_done  = waiting_read_done,
                               .context  = waiting};
    lock_calls_submit(waiting->api->reads, &waiting->call);
}

/* ---- together with others ---- */

/* Those of the list that wait for this command. Returns how many are left, in their order. */
static int shown_take(RequestWait **list, int count, const CommandShown *shown)
{
    int left = 0;

    for (int i = 0; i < count; i++) {
        RequestWait *waiting = list[i];

        if (waiting->wait.id != shown->id) {
            list[left++] = waiting;
            continue;
        }
        waiting->is_shown = true;
        text_append(&waiting->response->body, shown->value);
    }
    return left;
}

/* Those that are first in the list and can be read in one statement. *count: how many are left. */
static ErrorCode shown_next(const Api *api, RequestWait **list, int *count, Deadline deadline, Error *reterr)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    int64_t                  *ids   = arena_array(arena, int64_t, *count);
    const CommandShown       *shown;
    int                       shown_count, asked = *count;

    for (int i = 0; i < asked; i++)
        ids[i] = list[i]->wait.id;
    TRY(commands_show(api->pool, deadline, arena, ids, asked, &shown, &shown_count, reterr));
    for (int i = 0; i < shown_count; i++)
        *count = shown_take(list, *count, &shown[i]);
    if (*count == asked) /* they do not exist any more */
        *count = 0;
    return OK;
}

static ErrorCode shows_run(void *context, void **items, int count, Deadline deadline, Error *reterr)
{
    const Api   *api = context;
    RequestWait *list[SHOWS_MAX];
    int          left = 0;

    for (int i = 0; i < count; i++)
        if (!((RequestWait *)items[i])->is_shown)
            list[left++] = items[i];
    while (left > 0)
        TRY(shown_next(api, list, &left, deadline, reterr));
    return OK;
}

static void show_done(void *item, const Error *error)
{
    RequestWait *waiting = item;

    if (!waiting->is_shown && error->code == OK) {
        waiting_read_submit(waiting);
        return;
    }
    waiting->code  = waiting->is_shown ? OK : error->code;
    waiting->error = *error;
    request_resume(waiting->request);
}

Combiner *api_shows_new(Api *api, int slots)
{
    return combiner_new(
        &(CombinerOptions){.run = shows_run, .context = api, .slots_max = slots, .batch_max = SHOWS_MAX});
}

/* ---- waits ---- */

static void waiting_done(void *context)
{
    RequestWait *waiting = context;

    if (waiting->wait.canceled) /* no client reads the response */
        request_resume(waiting->request);
    else if (waiting->wait.is_allowed && !waiting->wait.prefix)
        combiner_submit(waiting->api->shows, waiting, read_deadline(waiting), show_done);
    else
        waiting_read_submit(waiting);
}

static ErrorCode waiting_answer(void *context, Request *request, Response *response, Error *reterr)
{
    const RequestWait *waiting = request_state(request);

    (void)context, (void)response; /* the handler has filled it */
    return error_pass(waiting->code, &waiting->error, reterr);
}

static void waiting_closed(void *state)
{
    RequestWait *waiting = state;

    outcome_wait_cancel(waiting->api->outcomes, &waiting->wait);
}

ErrorCode api_wait(Api *api, Request *request, Response *response, const OutcomeWait *wait, Error *reterr)
{
    Arena       *arena   = request_arena(request);
    RequestWait *waiting = arena_array(arena, RequestWait, 1);
    int64_t      wait_ms;

    TRY(request_query_seconds(request, "wait_s", OUTCOME_WAIT_S_MAX, &wait_ms, reterr));
    *waiting                 = (RequestWait){.wait = *wait, .api = api, .request = request, .response = response};
    waiting->wait.command_id = arena_text(arena, wait->command_id);
    waiting->wait.until      = deadline_in_ms(wait_ms);
    waiting->wait.on_done    = waiting_done;
    waiting->wait.context    = waiting;
    request_suspend(request, &(Suspend){.on_resume = waiting_answer, .on_closed = waiting_closed}, waiting);
    outcome_wait_submit(api->outcomes, &waiting->wait);
    return OK;
}
