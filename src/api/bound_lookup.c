/*
 * bound_lookup.c - see bound_lookup.h.
 */
#include "api/bound_lookup.h"

#include <string.h>

#include "api/bound.h"
#include "base/uuid.h"
#include "pg/tx.h"
#include "process/process.h"
#include "sql.h"

static TxOptions looking(const char *name, Request *request)
{
    return (TxOptions){.name      = name,
                       .deadline  = request_deadline(request),
                       .arena     = request_arena(request),
                       .read_only = true};
}

static ErrorCode not_found(const char *noun, const char *id, Error *reterr)
{
    return fail(reterr, ERR_NOT_FOUND, "%s %.100s not found", noun, id);
}

/* ---- commands and processes ---- */

static const char *names_join(Arena *arena, const char *const *names, int count, size_t skip)
{
    const char *text = names[0] + skip;

    for (int i = 1; i < count; i++)
        text = arena_print(arena, "%s, %s", text, names[i] + skip);
    return text;
}

ErrorCode bound_pin_command(Api *api, Request *request, bool is_process, Error *reterr)
{
    const char  *noun = is_process ? "process" : "command", *prefix = is_process ? PROCESS_DOMAIN_PREFIX : "";
    const char  *domain  = request_query(request, "domain");
    Arena       *arena   = request_arena(request);
    TxOptions    options = looking("bound_command", request);
    char         id[UUID_TEXT_SIZE];
    const char **names;
    int          count;

    TRY(api_id_take(request, id, reterr));
    TRY(db_call_many(api->pool, &options, sql_api_bound_command,
                     DB_ARGS(db_uuid(id), db_text(domain ? arena_print(arena, "%s%s", prefix, domain) : NULL),
                             db_text(prefix), db_bound(request_arena(request), api_bound_domains(request))),
                     &db_text_shape, &names, &count, reterr));
    if (count == 0)
        return not_found(noun, id, reterr);
    if (count > 1)
        return fail(reterr, ERR_CONFLICT, "%s %s is in several domains (%s): name one of them with domain", noun, id,
                    names_join(arena, names, count, strlen(prefix)));
    return request_query_set(request, "domain", names[0] + strlen(prefix), reterr);
}

/* ---- batches ---- */

ErrorCode bound_check_batch(Api *api, Request *request, const char *id, bool is_new, Error *reterr)
{
    TxOptions   options = looking("bound_batch", request);
    char        lower[UUID_TEXT_SIZE];
    const char *whose;

    if (!uuid_parse(id, lower))
        return fail(reterr, ERR_INVALID, "id must be a UUID, got \"%.60s\"", id);
    TRY(db_call(api->pool, &options, sql_api_bound_batch,
                DB_ARGS(db_uuid(lower), db_bound(request_arena(request), api_bound_domains(request))), &db_text_shape,
                &whose, reterr));
    if (strcmp(whose, "own") == 0 || (is_new && strcmp(whose, "none") == 0))
        return OK;
    if (is_new)
        return fail(reterr, ERR_KEY_REUSED, "batch_id %s was used before: give another one", lower);
    return not_found("batch", lower, reterr);
}

/* ---- transactions and holds ---- */

ErrorCode bound_check_transaction(Api *api, Request *request, Error *reterr)
{
    TxOptions   options = looking("bound_transaction", request);
    const char *id;
    bool        is_own;

    TRY(api_ref_take(request, &id, reterr));
    TRY(db_call(api->pool, &options, sql_api_bound_transaction,
                DB_ARGS(db_uuid(id), db_bound(request_arena(request), api_bound_owners(request))), &db_bool_shape,
                &is_own, reterr));
    return is_own ? OK : not_found("transaction or hold", id, reterr);
}
