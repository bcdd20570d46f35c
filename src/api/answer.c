/*
 * answer.c - the header Idempotency-Key on a POST that has no id in its body: a repeat gets the bytes that were stored under
 * the key.
 *
 * The response is stored after the operation, in a transaction of its own. So the operations behind these routes are idempotent by
 * themselves (a decision about one command, a settle under a lease); the key adds that a late repeat does nothing at all.
 * Refusals are not stored: the same request may succeed later.
 *
 * For handlers that may wait (api_answer_once), and for those that suspend their request (api_once_submit).
 */
#include <sodium.h>
#include <string.h>

#include "api/api.h"
#include "base/log.h"
#include "http/suspend.h"
#include "pg/tx.h"
#include "sql.h"

#define REQUEST_HASH_SIZE 32

#define KEPT_COLUMNS(X, T) \
    X(T, I32, status)      \
    X(T, TEXT, body)       \
    X(T, BOOL, is_same)
DB_ROW(Kept, KEPT_COLUMNS);
DB_SHAPE(kept, Kept, KEPT_COLUMNS);

static DbArg request_hash(Request *request)
{
    crypto_generichash_state state;
    unsigned char            hash[REQUEST_HASH_SIZE];
    const char              *path = request_path(request), *domain = request_query(request, "domain");
    size_t                   size;
    const char              *body = request_body(request, &size);

    crypto_generichash_init(&state, NULL, 0, sizeof hash);
    crypto_generichash_update(&state, (const unsigned char *)path, strlen(path) + 1);
    if (domain) /* the one query parameter of these routes */
        crypto_generichash_update(&state, (const unsigned char *)domain, strlen(domain) + 1);
    crypto_generichash_update(&state, (const unsigned char *)body, size);
    crypto_generichash_final(&state, hash, sizeof hash);
    return db_bytea(request_arena(request), hash, sizeof hash);
}

/* *ret_kept NULL: there is none. */
static ErrorCode answer_find(Pool *pool, Request *request, const char *key, DbArg hash, const Kept **ret_kept,
                             Error *reterr)
{
    TxOptions options = {.name      = "answer_find",
                         .deadline  = request_deadline(request),
                         .arena     = request_arena(request),
                         .read_only = true};
    void     *rows;
    int       count;

    TRY(db_call_many(pool, &options, sql_api_answer_find, DB_ARGS(db_uuid(key), hash), &kept_shape, &rows, &count,
                     reterr));
    *ret_kept = count ? rows : NULL;
    return OK;
}

static ErrorCode answer_keep(Pool *pool, Request *request, const char *key, DbArg hash, const Response *response,
                             Error *reterr)
{
    TxOptions options = {.name     = "answer_keep",
                         .deadline = request_deadline(request),
                         .lock_ms  = API_LOCK_MS,
                         .arena    = request_arena(request),
                         .keyed    = true};
    bool      kept;

    return db_call(pool, &options, sql_api_answer_keep,
                   DB_ARGS(db_uuid(key), hash, db_i32(response->status), db_text(text_string(&response->body))),
                   &db_bool_shape, &kept, reterr);
}

/* The operation has committed, so its response is sent even if it could not be stored. */
static void keep_failed(const Error *error)
{
    log_error(LOG_WARN, "http", "a response could not be stored under its Idempotency-Key", error);
}

static ErrorCode kept_use(const Kept *kept, Response *response, Error *reterr)
{
    if (!kept->is_same)
        return fail(reterr, ERR_KEY_REUSED, "the Idempotency-Key was used for another request: use a new one");
    response->status = kept->status;
    text_append(&response->body, kept->body);
    api_replayed_set(response);
    return OK;
}

ErrorCode api_answer_once(Api *api, Request *request, RouteHandler *handler, Response *response, Error *reterr)
{
    const char *key;
    const Kept *kept;
    DbArg       hash;
    Error       error = {0};

    TRY(api_key_own(request, &key, reterr));
    if (!key)
        return handler(api, request, response, reterr);
    hash = request_hash(request);
    TRY(answer_find(api->pool, request, key, hash, &kept, reterr));
    if (kept)
        return kept_use(kept, response, reterr);
    TRY(handler(api, request, response, reterr));
    if (answer_keep(api->pool, request, key, hash, response, &error) != OK)
        keep_failed(&error);
    return OK;
}

/* ---- without a thread ---- */

struct OnceState {
    Once       *once;
    Api        *api;
    Request    *request;
    Response   *response;
    const char *key;  /* NULL: there is none */
    DbArg       hash; /* of the request; its body is freed */
    const Kept *kept;
    LockCall    call; /* to find or keep the answer */
    ErrorCode   code;
    Error       error;
};

static ErrorCode find_run(LockCall *call, Error *reterr)
{
    OnceState *state = call->context;

    return answer_find(state->api->pool, state->request, state->key, state->hash, &state->kept, reterr);
}

static void find_done(void *context)
{
    OnceState *state = context;

    state->code  = state->call.code;
    state->error = state->call.error;
    if (state->code == OK && state->kept)
        state->code = kept_use(state->kept, state->response, &state->error);
    if (state->code == OK && !state->kept)
        state->once->begin(state->once);
    else
        request_resume(state->request);
}

static ErrorCode keep_run(LockCall *call, Error *reterr)
{
    OnceState *state = call->context;

    return answer_keep(state->api->pool, state->request, state->key, state->hash, state->response, reterr);
}

static void keep_done(void *context)
{
    OnceState *state = context;

    if (state->call.code != OK)
        keep_failed(&state->call.error);
    request_resume(state->request);
}

static void state_submit(OnceState *state, ErrorCode (*run)(LockCall *, Error *), void (*on_done)(void *))
{
    state->call =
        (LockCall){.run = run, .deadline = request_deadline(state->request), .on_done = on_done, .context = state};
    lock_calls_submit(state->api->answers, &state->call);
}

void api_once_done(void *context)
{
    Once      *once  = context;
    OnceState *state = once->state;

    state->code = once->write(once, state->response, &state->error);
    if (state->code == OK && state->key)
        state_submit(state, keep_run, keep_done);
    else
        request_resume(state->request);
}

static ErrorCode once_end(void *context, Request *request, Response *response, Error *reterr)
{
    const OnceState *state = request_state(request);

    (void)context, (void)response; /* it is filled */
    return error_pass(state->code, &state->error, reterr);
}

ErrorCode api_once_submit(Api *api, Request *request, Response *response, Once *once, Error *reterr)
{
    OnceState *state = arena_array(request_arena(request), OnceState, 1);

    *state = (OnceState){.once = once, .api = api, .request = request, .response = response};
    TRY(api_key_own(request, &state->key, reterr));
    if (state->key)
        state->hash = request_hash(request);
    once->state = state;
    request_body_free(request);
    request_suspend(request, &(Suspend){.on_resume = once_end}, state);
    if (state->key)
        state_submit(state, find_run, find_done);
    else
        once->begin(once);
    return OK;
}
