/*
 * bound.c - see bound.h.
 */
#include "api/bound.h"

#include <string.h>

#include "api/api.h"
#include "api/bound_lookup.h"
#include "base/reader.h"
#include "base/uuid.h"
#include "bus/reserved_domain.h"
#include "process/process.h"

#define TARGET_COMMAND "command:"
#define SCRATCH_BYTES  ((size_t)64 << 20)

const char *const touches_names[TOUCHES_COUNT] = {"unsaid", "service", "nothing", "named", "domains",
                                                  "owners", "command", "process", "batch", "transaction"};

/* What was checked of one request. */
typedef struct {
    Api           *api;
    Request       *request;
    const Binding *binding;
    int            named; /* domains and owners */
    int            depth; /* in rows of the body */
} Checked;

/* ---- names ---- */

const Bound *api_bound_domains(const Request *request)
{
    const Binding *binding = request_bound(request);

    return binding ? &binding->domains : NULL;
}

const Bound *api_bound_owners(const Request *request)
{
    const Binding *binding = request_bound(request);

    return binding ? &binding->owners : NULL;
}

/* The processes of a domain belong to it; what another module has reserved is in no binding. */
bool bound_has_domain(const Bound *domains, const char *domain)
{
    const size_t length = strlen(PROCESS_DOMAIN_PREFIX);

    if (strncmp(domain, PROCESS_DOMAIN_PREFIX, length) == 0)
        domain += length;
    return !reserved_domain_find(domain) && bound_has(domains, domain);
}

/* No key is bound to @system, whose balance is that of all owners. */
bool bound_has_owner(const Bound *owners, const char *owner)
{
    return owner[0] != '@' && bound_has(owners, owner);
}

static ErrorCode denied(Request *request, const char *field, const char *noun, const Bound *bound, const char *name,
                        Error *reterr)
{
    Arena *arena = request_arena(request);

    if (bound->count == 0)
        return fail(reterr, ERR_DENIED, "%s: the key is bound, and to no %s, got \"%.100s\"", field, noun, name);
    return fail(reterr, ERR_DENIED, "%s: the key is bound to the %ss %s, got \"%.100s\"", field, noun,
                bound_join(arena, bound), name);
}

ErrorCode bound_check_domain(Request *request, const char *field, const char *domain, Error *reterr)
{
    const Bound *domains = api_bound_domains(request);

    if (!domains || bound_has_domain(domains, domain))
        return OK;
    return denied(request, field, "domain", domains, domain, reterr);
}

static ErrorCode check_owner(Request *request, const char *field, const char *owner, Error *reterr)
{
    const Bound *owners = api_bound_owners(request);

    return bound_has_owner(owners, owner) ? OK : denied(request, field, "owner", owners, owner, reterr);
}

/* All names would be @system's, too. */
static ErrorCode check_owners(Request *request, const char *field, const char *pattern, Error *reterr)
{
    const Bound *owners = api_bound_owners(request);

    if (pattern[0] != '@' && pattern[0] != '*' && bound_has_all(owners, pattern))
        return OK;
    return denied(request, field, "owner", owners, pattern, reterr);
}

/* A queue of replies belongs to the domains that its name belongs to. PostgreSQL knows it in lower case, so a name in another case would be the queue
 * of another domain. */
static ErrorCode check_queue(Request *request, const char *field, const char *queue, Error *reterr)
{
    for (const char *c = queue; *c; c++)
        if (*c >= 'A' && *c <= 'Z')
            return fail(reterr, ERR_DENIED, "%s: a bound key names queues in lower case, got \"%.100s\"", field, queue);
    return bound_check_domain(request, field, queue, reterr);
}

static ErrorCode check_target(Request *request, const char *field, const char *target, Error *reterr)
{
    const size_t length = strlen(TARGET_COMMAND);
    const char  *domain = target;

    if (strncmp(target, TARGET_COMMAND, length) == 0) {
        domain = target + length;
        return bound_check_domain(request, field, arena_bytes(request_arena(request), domain, strcspn(domain, "/")),
                                  reterr);
    }
    if (strchr(target, ':'))
        return denied(request, field, "domain", api_bound_domains(request), target, reterr);
    return check_queue(request, field, target, reterr);
}

static ErrorCode check_name(Checked *checked, FieldNames names, const char *field, const char *name, Error *reterr)
{
    Request *request = checked->request;

    if (names == NAMES_PROCESSES && !name)
        name = PROCESS_DOMAIN_DEFAULT;
    if (names == NAMES_NOTHING || !name)
        return OK;
    if (names == NAMES_DOMAIN || names == NAMES_PROCESSES || names == NAMES_OWNER || names == NAMES_OWNERS)
        checked->named++;
    switch (names) {
    case NAMES_OWNER:
        return check_owner(request, field, name, reterr);
    case NAMES_OWNERS:
        return check_owners(request, field, name, reterr);
    case NAMES_TARGET:
        return check_target(request, field, name, reterr);
    case NAMES_BATCH:
    case NAMES_NEW_BATCH:
        if (checked->depth > 0) /* that of the whole request, or the handler refuses it */
            return OK;
        return bound_check_batch(checked->api, checked->request, name, names == NAMES_NEW_BATCH, reterr);
    case NAMES_DOMAIN:
    case NAMES_PROCESSES:
    case NAMES_NOTHING:
        break;
    }
    return bound_check_domain(request, field, name, reterr);
}

/* ---- bodies ---- */

static ErrorCode check_struct(Checked *checked, const FieldTable *table, const void *row, Arena *arena, Error *reterr);

static ErrorCode check_rows(Checked *checked, const Field *field, const ReaderArray *array, Arena *arena, Error *reterr)
{
    const char *items = array->items;

    checked->depth++;
    for (int i = 0; i < array->count; i++)
        if (check_struct(checked, field->rows, items + (size_t)i * field->rows->size, arena, reterr) != OK) {
            error_prefix(reterr, "%s[%d]", field->name, i);
            return reterr->code;
        }
    checked->depth--;
    return OK;
}

static ErrorCode check_object(Checked *checked, const Field *field, const char *json, Arena *arena, Error *reterr)
{
    void *row = arena_alloc(arena, field->rows->size);

    if (!json)
        return OK;
    if (reader_object(json, strlen(json), field->rows, arena, row, reterr) == OK &&
        check_struct(checked, field->rows, row, arena, reterr) == OK)
        return OK;
    error_prefix(reterr, "%s", field->name);
    return reterr->code;
}

static bool table_names(const FieldTable *table)
{
    for (size_t i = 0; i < table->count; i++)
        if (table->fields[i].names || (table->fields[i].rows && table_names(table->fields[i].rows)))
            return true;
    return false;
}

static ErrorCode check_struct(Checked *checked, const FieldTable *table, const void *row, Arena *arena, Error *reterr)
{
    for (size_t i = 0; i < table->count; i++) {
        const Field *field = &table->fields[i];
        const char  *at    = (const char *)row + field->offset;

        if (field->names)
            TRY(check_name(checked, field->names, field->name, *(const char *const *)at, reterr));
        else if (field->type == FIELD_ROWS && table_names(field->rows))
            TRY(check_rows(checked, field, (const ReaderArray *)at, arena, reterr));
        else if (field->type == FIELD_OBJECT && table_names(field->rows))
            TRY(check_object(checked, field, *(const char *const *)at, arena, reterr));
    }
    return OK;
}

/* The handler reads the body once more. */
static ErrorCode check_body(Checked *checked, Error *reterr)
{
    const FieldTable         *table = request_route(checked->request)->body;
    size_t                    size;
    const char               *body  = request_body(checked->request, &size);
    scoped(arena_free) Arena *arena = NULL;

    if (!table || !table_names(table))
        return OK;
    arena     = arena_new(SCRATCH_BYTES);
    void *row = arena_alloc(arena, table->size);
    if (size == 0 && !request_route(checked->request)->body_required)
        body = "{}", size = 2;
    TRY(reader_object(body, size, table, arena, row, reterr));
    return check_struct(checked, table, row, arena, reterr);
}

/* ---- paths and parameters ---- */

static ErrorCode check_path(Checked *checked, Error *reterr)
{
    const char *path = request_route(checked->request)->path;

    if (strstr(path, "{domain}"))
        TRY(check_name(checked, NAMES_DOMAIN, "the path", request_capture(checked->request, "domain"), reterr));
    if (strstr(path, "{queue}")) { /* of replies: as a target names it */
        checked->named++;
        TRY(check_queue(checked->request, "queue", request_capture(checked->request, "queue"), reterr));
    }
    if (strstr(path, "{owner}"))
        TRY(check_name(checked, NAMES_OWNER, "the path", request_capture(checked->request, "owner"), reterr));
    return OK;
}

/* A list without the parameter is that of the owners to which the key is bound, if one pattern has them all. */
static ErrorCode owners_pin(Checked *checked, const RouteParameter *row, Error *reterr)
{
    const Bound *owners = &checked->binding->owners;

    if (row->names != NAMES_OWNERS || request_query(checked->request, row->name) || owners->count != 1)
        return OK;
    return request_query_set(checked->request, row->name, owners->patterns[0], reterr);
}

static ErrorCode check_query(Checked *checked, Error *reterr)
{
    const RouteParameter *row = request_route(checked->request)->parameters;

    for (; row && row->name; row++) {
        TRY(owners_pin(checked, row, reterr));
        TRY(check_name(checked, row->names, row->name, request_query(checked->request, row->name), reterr));
    }
    return OK;
}

/* ---- ids ---- */

static ErrorCode check_id(Checked *checked, Touches touches, Error *reterr)
{
    switch (touches) {
    case TOUCHES_COMMAND:
    case TOUCHES_PROCESS:
        return bound_pin_command(checked->api, checked->request, touches == TOUCHES_PROCESS, reterr);
    case TOUCHES_BATCH:
        return bound_check_batch(checked->api, checked->request, request_capture(checked->request, "id"),
                                 /* is_new= */ false, reterr);
    case TOUCHES_TRANSACTION:
        return bound_check_transaction(checked->api, checked->request, reterr);
    case TOUCHES_UNSAID:
    case TOUCHES_SERVICE:
    case TOUCHES_NOTHING:
    case TOUCHES_NAMED:
    case TOUCHES_DOMAINS:
    case TOUCHES_OWNERS:
    case TOUCHES_COUNT:
        break;
    }
    return OK;
}

ErrorCode api_bound(void *context, Request *request, Response *response, Error *reterr)
{
    const Route *route   = request_route(request);
    Checked      checked = {.api = context, .request = request, .binding = request_bound(request)};
    Touches      touches = (Touches)route->touches;

    if (touches == TOUCHES_UNSAID || touches == TOUCHES_SERVICE)
        return fail(reterr, ERR_DENIED,
                    "the key is bound to domains or owners, and this route is about the whole service");
    TRY(check_path(&checked, reterr));
    TRY(check_query(&checked, reterr));
    TRY(check_body(&checked, reterr));
    if (touches == TOUCHES_NAMED && checked.named == 0)
        return fail(reterr, ERR_DENIED, "the key is bound to domains or owners: the request must name one of them");
    TRY(check_id(&checked, touches, reterr));
    return route->handler(context, request, response, reterr);
}
