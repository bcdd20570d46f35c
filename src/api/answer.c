/*
 * answer.c - the header Idempotency-Key on a POST that has no id in its body: a repeat gets the bytes that were stored under
 * the key.
 *
 * The response is stored after the operation, in a transaction of its own. So the operations behind these routes are idempotent by
 * themselves (a decision about one command, a settle under a lease); the key adds that a late repeat does nothing at all.
 * Refusals are not stored: the same request may succeed later.
 */
#include <sodium.h>
#include <string.h>

#include "api/api.h"
#include "base/log.h"
#include "pg/tx.h"
#include "sql.h"

#define REQUEST_HASH_SIZE 32

#define KEPT_COLUMNS(X, T)            \
    X(T, int32_t, DB_I32, status)     \
    X(T, const char *, DB_TEXT, body) \
    X(T, bool, DB_BOOL, is_same)
typedef struct {
    KEPT_COLUMNS(DB_FIELD, Kept)
} Kept;
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
static ErrorCode answer_find(Pool *pool, Request *request, const char *key, const Kept **ret_kept, Error *reterr)
{
    TxOptions options = {.name      = "answer_find",
                         .deadline  = request_deadline(request),
                         .arena     = request_arena(request),
                         .read_only = true};
    void     *rows;
    int       count;

    TRY(db_call_many(pool, &options, sql_api_answer_find, DB_ARGS(db_uuid(key), request_hash(request)), &kept_shape,
                     &rows, &count, reterr));
    *ret_kept = count ? rows : NULL;
    return OK;
}

/* The operation has committed, so its response is sent even if it could not be stored. */
static void answer_keep(Pool *pool, Request *request, const char *key, const Response *response)
{
    TxOptions options = {.name     = "answer_keep",
                         .deadline = request_deadline(request),
                         .arena    = request_arena(request),
                         .keyed    = true};
    Error     error;
    bool      kept;

    if (db_call(pool, &options, sql_api_answer_keep,
                DB_ARGS(db_uuid(key), request_hash(request), db_i32(response->status),
                        db_text(text_string(&response->body))),
                &db_bool_shape, &kept, &error) != OK)
        log_error(LOG_WARN, "http", "a response could not be stored under its Idempotency-Key", &error);
}

/* Run the handler, or send the response that is stored under the same key. */
static ErrorCode answer_once(Api *api, Request *request, RouteHandler *handler, Response *response, Error *reterr)
{
    const char *key;
    const Kept *kept;

    TRY(api_key_own(request, &key, reterr));
    if (!key)
        return handler(api, request, response, reterr);
    TRY(answer_find(api->pool, request, key, &kept, reterr));
    if (kept && !kept->is_same)
        return fail(reterr, ERR_KEY_REUSED, "the Idempotency-Key was used for another request: use a new one");
    if (kept) {
        response->status = kept->status;
        text_append(&response->body, kept->body);
        api_replayed_set(response);
        return OK;
    }
    TRY(handler(api, request, response, reterr));
    answer_keep(api->pool, request, key, response);
    return OK;
}

#define KEPT_HANDLER(name)                                                                    \
    ErrorCode name##_once(void *context, Request *request, Response *response, Error *reterr) \
    {                                                                                         \
        return answer_once(context, request, name, response, reterr);                         \
    }

KEPT_HANDLER(api_dead_letter_retry)
KEPT_HANDLER(api_command_cancel)
KEPT_HANDLER(api_batch_seal)
KEPT_HANDLER(api_settle)
KEPT_HANDLER(api_extend)
KEPT_HANDLER(api_tsq_retry)
KEPT_HANDLER(api_tsq_cancel)
KEPT_HANDLER(api_tsq_complete)
KEPT_HANDLER(api_activation_report)
KEPT_HANDLER(api_activation_extend)
KEPT_HANDLER(api_process_move)
KEPT_HANDLER(api_process_retry)
KEPT_HANDLER(api_process_cancel)
KEPT_HANDLER(api_process_complete)
